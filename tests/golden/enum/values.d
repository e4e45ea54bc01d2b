/* NAME enumerators count from zero or from what they are given
 * OPTIONS -q
 */
enum color {
	RED,
	GREEN = 5,
	BLUE,
	BLACK = -1
};
BEGIN
{
	printf("%d %d %d %d %d\n", RED, GREEN, BLUE, BLACK, sizeof (enum color));
	exit(0);
}
/* EXPECT
 * 0 5 6 -1 4
 *
 */
