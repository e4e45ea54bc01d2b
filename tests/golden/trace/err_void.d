/* NAME what has no value cannot be traced
 * TAG D_TRACE_VOID
 */
BEGIN
{
	trace((void)1);
}
