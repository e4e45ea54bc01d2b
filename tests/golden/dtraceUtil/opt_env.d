/* NAME DTRACE_OPT_ presets an option
 * ENV DTRACE_OPT_QUIET=1 DTRACE_OPT_STRSIZE=40
 * OPTIONS
 */
BEGIN
{
	printf("%d\n", sizeof (execname));
	exit(0);
}
/* EXPECT
 * 40
 *
 */
