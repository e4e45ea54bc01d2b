/* NAME fewer conversions than aggregations print the first ones
 * OPTIONS -q
 */
BEGIN
{
	@n["a"] = sum(1);
	@t["a"] = sum(20);
	printa("%s %@d\n", @n, @t);
	exit(0);
}
/* EXPECT
 * a 1
 *
 */
