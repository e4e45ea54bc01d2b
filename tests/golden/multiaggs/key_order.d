/* NAME aggsortkey orders rows by key
 * OPTIONS -q -x aggsortkey
 */
BEGIN
{
	@a["x"] = sum(1);
	@a["b"] = sum(2);
	@b["x"] = sum(1);
	printa("%s %@d %@d\n", @a, @b);
	exit(0);
}
/* EXPECT
 * b 2 0
 * x 1 1
 *
 */
