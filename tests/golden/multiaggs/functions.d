/* NAME different functions stand side by side
 * OPTIONS -q
 */
tick-5ms { i++; @n = count(); @s = sum(i); @m = max(i); @l = min(i); }
tick-5ms
/i == 3/
{
	printa("%@d %@d %@d %@d\n", @n, @s, @m, @l);
	exit(0);
}
/* EXPECT
 * 3 6 3 1
 *
 */
