/* NAME min() and max() of each key
 * OPTIONS -q
 */
BEGIN
{
	@lo["a"] = min(4);
	@lo["a"] = min(2);
	@hi["a"] = max(4);
	@hi["a"] = max(2);
	printa("%s %@d %@d\n", @lo, @hi);
	exit(0);
}
/* EXPECT
 * a 2 4
 *
 */
