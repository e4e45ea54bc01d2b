/* NAME avg() is the mean without the fraction
 * OPTIONS -q
 */
BEGIN
{
	@s = avg(1);
	@s = avg(4);
	exit(0);
}
/* EXPECT
 *
 *                 2
 */
