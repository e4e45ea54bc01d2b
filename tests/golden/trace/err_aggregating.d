/* NAME an aggregating function has no value to trace
 * TAG D_TRACE_DYN
 */
BEGIN
{
	trace(count());
}
