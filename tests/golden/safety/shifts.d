/* NAME shifts by more than the width are defined
 * OPTIONS -q
 */
int64_t x;
int y;

BEGIN
{
	x = 1;
	y = 64;
	printf("%d\n", (x << y) == (x << y));
	exit(0);
}
/* EXPECT
 * 1
 *
 */
