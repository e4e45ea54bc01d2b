/* NAME an array declaration needs a size or a signature
 * TAG D_DECL_ARRNULL
 */
int numbers[];
BEGIN
{
	exit(0);
}
