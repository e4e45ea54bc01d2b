/* NAME ?: with a constant condition may assign an aggregation
 * OPTIONS -q
 */
inline int OPT_count = 1;

BEGIN
{
	OPT_count ? @calls["seen"] = count() : 1;
	OPT_count ? (OPT_count == 2 ? @other = count() : 1) : 1;
	OPT_count ? 1 : (@calls["not"] = count());
	printa("%s %@d\n", @calls);
	exit(0);
}
/* EXPECT
 * seen 1
 *
 */
