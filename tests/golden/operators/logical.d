/* NAME && and || and ^^
 * OPTIONS -q
 */
BEGIN
{
	printf("%d%d%d ", 1 && 2, 1 && 0, 0 && 0);
	printf("%d%d%d ", 1 || 0, 0 || 0, 5 || 6);
	printf("%d%d%d\n", 1 ^^ 0, 1 ^^ 5, 0 ^^ 0);
	exit(0);
}
/* EXPECT
 * 100 101 100
 *
 */
