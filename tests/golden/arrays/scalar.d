/* NAME arrays of fixed size
 * OPTIONS -q
 */
int numbers[5];
BEGIN
{
	numbers[0] = 10;
	numbers[4] = 50;
	printf("%d %d %d\n", numbers[0], numbers[4], numbers[2]);
	exit(0);
}
/* EXPECT
 * 10 50 0
 *
 */
