/* NAME other probes do not fire once exit() was called
 * OPTIONS -q
 * SKIP does not compile: inlines nest too deeply
 */
BEGIN
{
	exit(0);
}
tick-1ms
{
	printf("tick\n");
}
/* EXPECT
 *
 */
