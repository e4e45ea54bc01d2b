/* NAME an aggregation has no value in an expression
 * TAG D_OP_INCOMPAT
 * SKIP the command says D_SYNTAX instead
 */
BEGIN
{
	@total = count();
	number = @total + 1;
}
