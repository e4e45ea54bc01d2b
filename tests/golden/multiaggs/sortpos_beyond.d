/* NAME aggsortpos beyond the last aggregation is 0
 * OPTIONS -q
 */
BEGIN
{
	@a[1] = sum(1); @a[2] = sum(2); @b[1] = sum(2); @b[2] = sum(1);
	setopt("aggsortpos", "3");
	printa("%d %@d %@d\n", @a, @b);
	exit(0);
}
/* EXPECT
 * 1 1 2
 * 2 2 1
 *
 */
