/* NAME DTRACE_OPT_ presets an option
 * ENV DTRACE_OPT_QUIET=1 DTRACE_OPT_STRSIZE=40
 * OPTIONS
 * SKIP does not compile: inlines nest too deeply
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
