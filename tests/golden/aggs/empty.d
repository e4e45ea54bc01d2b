/* NAME an aggregation that nothing was put into prints nothing
 * OPTIONS -q
 */
BEGIN / 0 /
{
	@a = count();
}
BEGIN
{
	exit(0);
}
/* EXPECT
 *
 */
