/* NAME an array declaration needs a size or a signature
 * TAG D_DECL_ARRNULL
 * SKIP the command says D_DECL_INCOMPLETE instead
 */
int numbers[];
BEGIN
{
	exit(0);
}
