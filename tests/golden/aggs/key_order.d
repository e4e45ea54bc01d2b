/* NAME integer keys are ordered by their bits, negative ones last; one and two bytes have no sign
 * OPTIONS -q
 */
BEGIN
{
	@a[-1] = count();
	@a[3] = count();
	@a[-20] = count();
	@b[(char)-1] = count();
	@b[(char)1] = count();
	@c[(short)-1] = count();
	printa("%d %@d\n", @c);
	exit(0);
}
/* EXPECT
 * -1 1
 *
 *         3                1
 *       -20                1
 *        -1                1
 *    1                1
 *  255                1
 */
