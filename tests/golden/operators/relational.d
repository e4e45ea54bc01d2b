/* NAME comparisons are 0 or 1
 * OPTIONS -q
 */
BEGIN
{
	printf("%d%d%d%d%d%d\n", 1 < 2, 1 > 2, 1 <= 1, 1 >= 2, 1 == 1, 1 != 1);
	exit(0);
}
/* EXPECT
 * 101010
 *
 */
