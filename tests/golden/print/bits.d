/* NAME bit-fields have their width
 * OPTIONS -q
 */
struct b {
	unsigned int low : 3;
	int high : 5;
};
struct b x;

BEGIN
{
	x.low = 5;
	x.high = -1;
	print(x);
	exit(0);
}
/* EXPECT
 * struct b {
 *     unsigned int low :3 = 0x5
 *     int high :5 = 0x1f
 * }
 *
 */
