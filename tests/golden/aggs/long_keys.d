/* NAME a 64-bit key is 16 columns wide
 * OPTIONS -q
 */
BEGIN
{
	@[(long)1, (char)2, (short)3] = count();
	exit(0);
}
/* EXPECT
 *
 *                 1   2     3                1
 */
