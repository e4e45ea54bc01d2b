/* NAME operators bind as in C
 * OPTIONS -q
 */
BEGIN
{
	printf("%d %d %d\n", 2 + 3 * 4, (2 + 3) * 4, 2 + 12 / 4 - 1);
	printf("%d %d\n", 1 << 2 + 1, 7 & 3 == 3);
	exit(0);
}
/* EXPECT
 * 14 20 4
 * 8 1
 *
 */
