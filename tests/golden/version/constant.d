/* NAME version=1.0 hides what came later
 * TAG D_FUNC_UNDEF
 * OPTIONS -x version=1.0
 */
BEGIN
{
	trace(inet_ntop(2, 0));
}
