/* NAME the comma operator has the value of its right side
 * OPTIONS -q
 */
BEGIN
{
	x = (1, 2, 3);
	printf("%d\n", x);
	exit(0);
}
/* EXPECT
 * 3
 *
 */
