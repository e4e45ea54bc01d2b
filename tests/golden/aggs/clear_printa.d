/* NAME clear() keeps the keys and zeroes the values
 * OPTIONS -q
 */
BEGIN
{
	@t["a"] = sum(5);
	@t["b"] = sum(7);
	printa("%s %@d\n", @t);
	clear(@t);
	printa("%s %@d\n", @t);
	exit(0);
}
/* EXPECT
 * a 5
 * b 7
 * a 0
 * b 0
 *
 */
