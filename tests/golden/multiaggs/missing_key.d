/* NAME a key that one of them lacks counts as zero there
 * OPTIONS -q
 */
BEGIN
{
	@n["a"] = count();
	@t["b"] = sum(20);
	printa("%s %@d %@d\n", @n, @t);
	exit(0);
}
/* EXPECT
 * b 0 20
 * a 1 0
 *
 */
