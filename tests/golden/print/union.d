/* NAME print() shows unions
 * OPTIONS -q
 */
union u {
	int i;
	char c;
};
union u x;

BEGIN
{
	x.i = 66;
	print(x);
	exit(0);
}
/* EXPECT
 * union u {
 *     int i = 0x42
 *     char c = 'B'
 * }
 *
 */
