/* NAME _DTRACE_TESTING leaves CPU and ID out
 * OPTIONS
 * ENV _DTRACE_TESTING=1
 */
BEGIN
{
	trace(1);
	exit(0);
}
/* EXPECT
 *                    FUNCTION:NAME
 *                           :BEGIN         1
 *
 */
