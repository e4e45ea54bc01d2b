/* NAME each aggregation stands together at the end
 * OPTIONS -q
 */
BEGIN
{
	@a["x"] = count();
	@b["y"] = count();
	@a["z"] = count();
	exit(0);
}
/* EXPECT
 *
 *   x                                                                 1
 *   z                                                                 1
 *   y                                                                 1
 */
