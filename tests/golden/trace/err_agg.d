/* NAME an aggregation cannot be traced
 * TAG D_TRACE_AGG
 */
BEGIN
{
	@total = count();
	trace(@total);
}
