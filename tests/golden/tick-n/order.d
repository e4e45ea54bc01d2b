/* NAME faster ticks fire more often
 * OPTIONS -q
 */
tick-2ms
{
	fast++;
}
tick-40ms
{
	slow++;
}
tick-40ms
/ slow == 3 /
{
	printf("%d\n", fast > 2 * slow);
	exit(0);
}
/* EXPECT
 * 1
 *
 */
