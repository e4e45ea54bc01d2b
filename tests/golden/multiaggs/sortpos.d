/* NAME aggsortpos says whose value sorts
 * OPTIONS -q -x aggsortpos=1
 */
BEGIN
{
	@n["a"] = sum(1);
	@n["b"] = sum(2);
	@t["a"] = sum(20);
	@t["b"] = sum(10);
	printa("%s %@d %@d\n", @n, @t);
	exit(0);
}
/* EXPECT
 * b 2 10
 * a 1 20
 *
 */
