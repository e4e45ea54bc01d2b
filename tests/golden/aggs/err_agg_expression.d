/* NAME an aggregation has no value in an expression
 * TAG D_OP_INCOMPAT
 */
BEGIN
{
	@total = count();
	number = @total + 1;
}
