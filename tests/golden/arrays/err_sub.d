/* NAME the size of an array is an integer constant
 * TAG D_DECL_ARRSUB
 * SKIP the command says D_DECL_ARRNULL instead
 */
int numbers[-1];
BEGIN
{
	exit(0);
}
