/* NAME an aggregation without a function is no statement
 * TAG D_AGG_NULL
 */
BEGIN
{
	@total = count();
	@total;
}
