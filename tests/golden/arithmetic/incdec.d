/* NAME ++ and -- before and after a name
 * OPTIONS -q
 */
BEGIN
{
	x = 5;
	printf("%d ", x++);
	printf("%d ", x);
	printf("%d ", ++x);
	printf("%d ", x--);
	printf("%d ", --x);
	printf("%d\n", x);
	exit(0);
}
/* EXPECT
 * 5 6 7 7 5 5
 *
 */
