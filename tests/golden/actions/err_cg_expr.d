/* NAME an action stands alone, not in an expression
 * TAG D_CG_EXPR
 */
BEGIN
{
	(void)printf("a");
}
