/* NAME trunc(@, n) keeps the n largest
 * OPTIONS -q
 */
BEGIN
{
	@t["a"] = sum(5);
	@t["b"] = sum(7);
	@t["c"] = sum(1);
	trunc(@t, 2);
	printa("%s %@d\n", @t);
	exit(0);
}
/* EXPECT
 * a 5
 * b 7
 *
 */
