/* NAME unary operators
 * OPTIONS -q
 */
BEGIN
{
	x = 5;
	printf("%d %d %d %d %d\n", -x, +x, ~x, !x, !!x);
	exit(0);
}
/* EXPECT
 * -5 5 -6 0 1
 *
 */
