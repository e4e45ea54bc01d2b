/* NAME assignment has a value and binds to the right
 * OPTIONS -q
 */
BEGIN
{
	a = b = c = 7;
	printf("%d %d %d\n", a, b, c);
	exit(0);
}
/* EXPECT
 * 7 7 7
 *
 */
