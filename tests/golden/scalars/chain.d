/* NAME assignments have a value
 * OPTIONS -q
 */
BEGIN
{
	x = y = 5;
	printf("%d %d\n", x, y);
	exit(0);
}
/* EXPECT
 * 5 5
 *
 */
