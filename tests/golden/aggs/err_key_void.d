/* NAME a void expression is no key
 * TAG D_KEY_TYPE
 * SKIP the command says D_CG_EXPR instead
 */
BEGIN
{
	@total[trace(1)] = count();
}
