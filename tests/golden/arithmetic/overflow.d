/* NAME 64-bit arithmetic wraps around
 * OPTIONS -q
 */
BEGIN
{
	x = 0x7fffffffffffffff;
	x++;
	printf("%d\n", x);
	y = 0xffffffffffffffff;
	y++;
	printf("%d\n", y);
	exit(0);
}
/* EXPECT
 * -9223372036854775808
 * 0
 *
 */
