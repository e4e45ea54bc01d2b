/* NAME an aggregation that printa() printed is not printed at the end
 * OPTIONS -q
 */
BEGIN
{
	@one["x"] = count();
	@two["y"] = sum(5);
	printa("%s=%@d\n", @one);
	exit(0);
}
/* EXPECT
 * x=1
 *
 *   y                                                                 5
 */
