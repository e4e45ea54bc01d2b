/* NAME integer arithmetic as in C
 * OPTIONS -q
 */
BEGIN
{
	printf("%d %d %d %d %d\n", 7 + 3, 7 - 10, 7 * 3, 7 / 2, 7 % 3);
	printf("%d %d %d\n", -7 / 2, -7 % 3, 7 % -3);
	exit(0);
}
/* EXPECT
 * 10 -3 21 3 1
 * -3 -1 1
 *
 */
