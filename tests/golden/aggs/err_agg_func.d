/* NAME an aggregation takes an aggregating function
 * TAG D_AGG_FUNC
 */
BEGIN
{
	@total = strlen("abc");
}
