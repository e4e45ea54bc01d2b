/* NAME a comparison with an unsigned 64-bit value is unsigned
 * OPTIONS -q
 */
BEGIN
{
	x = (int64_t)-1;
	y = (uint64_t)1;
	printf("%d %d\n", x < 0, x > y);
	exit(0);
}
/* EXPECT
 * 1 1
 *
 */
