/* NAME what has no value cannot be traced
 * TAG D_TRACE_VOID
 * SKIP the command says D_UNKNOWN instead
 */
BEGIN
{
	trace((void)1);
}
