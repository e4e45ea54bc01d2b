/* NAME ?: chooses
 * OPTIONS -q
 */
BEGIN
{
	x = 5;
	printf("%s %d\n", x > 3 ? "big" : "small", x > 7 ? 1 : x > 4 ? 2 : 3);
	exit(0);
}
/* EXPECT
 * big 2
 *
 */
