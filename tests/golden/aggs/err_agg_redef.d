/* NAME one aggregation has one function
 * TAG D_AGG_REDEF
 */
BEGIN
{
	@total = count();
	@total = sum(3);
}
