/* NAME the longest operator is read
 * OPTIONS -q
 */
BEGIN
{
	x = 5;
	y = x+++2;
	z = x---1;
	printf("%d %d %d\n", x, y, z);
	exit(0);
}
/* EXPECT
 * 5 7 5
 *
 */
