/* NAME the least integer by -1 is itself, without a remainder
 * OPTIONS -q
 */
int64_t x;

BEGIN
{
	x = 1LL << 63;
}

BEGIN
{
	printf("%d %d\n", x / -1 == x, x % -1);
	exit(0);
}
/* EXPECT
 * 1 0
 *
 */
