/* NAME printa() of several aggregations joins them by key
 * OPTIONS -q
 */
BEGIN
{
	@n["a"] = count();
	@n["a"] = count();
	@n["b"] = count();
	@t["a"] = sum(10);
	@t["b"] = sum(20);
	printa("%s %@d %@d\n", @n, @t);
	exit(0);
}
/* EXPECT
 * b 1 20
 * a 2 10
 *
 */
