/* NAME ++ and -- before and after a name
 * OPTIONS -q
 */
BEGIN
{
	x = 1;
	printf("%d %d %d %d %d\n", x++, ++x, x--, --x, x);
	exit(0);
}
/* EXPECT
 * 1 3 3 1 1
 *
 */
