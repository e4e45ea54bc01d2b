/* NAME avg() of negative values is negative
 * OPTIONS -q
 */
BEGIN
{
	@s = avg(-10);
	@s = avg(-20);
	exit(0);
}
/* EXPECT
 *
 *               -15
 */
