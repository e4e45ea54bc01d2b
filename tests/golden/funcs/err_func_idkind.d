/* NAME a variable is no function
 * TAG D_FUNC_IDKIND
 * SKIP the command says D_FUNC_UNDEF instead
 */
BEGIN
{
	timestamp();
}
