/* NAME normalize() divides averages, minima and negative sums towards 0
 * OPTIONS -q
 */
BEGIN
{
	@avg = avg(7);
	@avg = avg(8);
	@min = min(9);
	@sum = sum(-10);
	normalize(@avg, 2);
	normalize(@min, 2);
	normalize(@sum, 3);
	exit(0);
}
/* EXPECT
 *
 *                 3
 *                 4
 *                -3
 */
