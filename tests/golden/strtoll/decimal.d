/* NAME strtoll() reads a number up to what is no digit
 * OPTIONS -q
 */
BEGIN
{
	printf("%d %d %d %d\n", strtoll("123"), strtoll("-45"), strtoll("12abc"), strtoll("  7"));
	exit(0);
}
/* EXPECT
 * 123 -45 12 7
 *
 */
