/* NAME stackdepth and ustackdepth are numbers
 * OPTIONS -q
 */
BEGIN
{
	x = stackdepth;
	printf("%d\n", x >= 0);
	exit(0);
}
/* EXPECT
 * 1
 *
 */
