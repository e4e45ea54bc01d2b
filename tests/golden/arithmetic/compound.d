/* NAME compound assignment
 * OPTIONS -q
 */
BEGIN
{
	x = 10;
	x += 5; printf("%d ", x);
	x -= 3; printf("%d ", x);
	x *= 4; printf("%d ", x);
	x /= 5; printf("%d ", x);
	x %= 5; printf("%d ", x);
	x <<= 4; printf("%d ", x);
	x >>= 1; printf("%d ", x);
	x |= 3; printf("%d ", x);
	x &= 18; printf("%d ", x);
	x ^= 1; printf("%d\n", x);
	exit(0);
}
/* EXPECT
 * 15 12 48 9 4 64 32 35 2 3
 *
 */
