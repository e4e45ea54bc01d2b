/* NAME right shifts of signed values keep the sign
 * OPTIONS -q
 */
BEGIN
{
	x = (int64_t)-16;
	y = (uint64_t)-16;
	printf("%d %x\n", x >> 2, y >> 60);
	exit(0);
}
/* EXPECT
 * -4 f
 *
 */
