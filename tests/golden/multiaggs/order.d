/* NAME without options rows are ordered by the first aggregation
 * OPTIONS -q
 */
BEGIN
{
	@a["x"] = sum(2);
	@a["y"] = sum(1);
	@b["x"] = sum(1);
	@b["y"] = sum(2);
	printa("%s %@d %@d\n", @a, @b);
	exit(0);
}
/* EXPECT
 * y 1 2
 * x 2 1
 *
 */
