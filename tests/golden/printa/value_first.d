/* NAME the value may stand before the keys
 * OPTIONS -q
 */
BEGIN
{
	@["key"] = sum(42);
	printa("%@d %s\n", @);
	exit(0);
}
/* EXPECT
 * 42 key
 *
 */
