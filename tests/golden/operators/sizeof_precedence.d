/* NAME sizeof binds as a unary operator
 * OPTIONS -q
 */
BEGIN
{
	printf("%d\n", sizeof (int) * 2 + 1);
	exit(0);
}
/* EXPECT
 * 9
 *
 */
