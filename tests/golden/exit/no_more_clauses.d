/* NAME other probes do not fire once exit() was called
 * OPTIONS -q
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
