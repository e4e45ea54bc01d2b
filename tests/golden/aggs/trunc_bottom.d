/* NAME trunc(@, -n) keeps the n smallest
 * OPTIONS -q
 */
BEGIN
{
	@t["a"] = sum(5);
	@t["b"] = sum(7);
	@t["c"] = sum(1);
	trunc(@t, -2);
	printa("%s %@d\n", @t);
	exit(0);
}
/* EXPECT
 * c 1
 * a 5
 *
 */
