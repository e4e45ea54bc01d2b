/* NAME a union may hold bit-fields
 * OPTIONS -q
 */
union b {
	unsigned int low : 4;
	unsigned int whole;
};
union b y;

BEGIN
{
	y.whole = 0x35;
	printf("%d %d\n", y.low, y.whole);
	exit(0);
}
/* EXPECT
 * 5 53
 *
 */
