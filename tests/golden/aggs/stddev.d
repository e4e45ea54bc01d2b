/* NAME stddev() is the standard deviation of all values
 * OPTIONS -q
 */
BEGIN
{
	@s = stddev(2);
	@s = stddev(4);
	@s = stddev(4);
	@s = stddev(4);
	@s = stddev(5);
	@s = stddev(5);
	@s = stddev(7);
	@s = stddev(9);
	exit(0);
}
/* EXPECT
 *
 *                 2
 */
