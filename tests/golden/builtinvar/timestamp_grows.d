/* NAME timestamp grows from firing to firing
 * OPTIONS -q
 */
BEGIN
{
	start = timestamp;
}
tick-2ms
{
	printf("%d %d\n", timestamp > start, timestamp - start < 10000000000);
	exit(0);
}
/* EXPECT
 * 1 1
 *
 */
