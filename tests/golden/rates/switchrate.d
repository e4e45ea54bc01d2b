/* NAME the switchrate does not hold output back at the end
 * OPTIONS -q -x switchrate=10s
 */
BEGIN
{
	printf("at once\n");
}
tick-20ms
{
	exit(0);
}
/* EXPECT
 * at once
 *
 */
