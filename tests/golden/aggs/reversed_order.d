/* NAME aggsortrev reverses the aggregations, too
 * OPTIONS -q -x aggsortrev
 */
BEGIN
{
	@a[1] = sum(1);
	@a[2] = sum(0);
	@b[2] = sum(5);
	@b[3] = sum(9);
	exit(0);
}
/* EXPECT
 *
 *         3                9
 *         2                5
 *         1                1
 *         2                0
 */
