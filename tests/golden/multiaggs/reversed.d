/* NAME aggsortrev turns the order round
 * OPTIONS -q -x aggsortrev
 */
BEGIN
{
	@a[1] = sum(1);
	@a[2] = sum(2);
	@b[1] = sum(5);
	printa("%d %@d %@d\n", @a, @b);
	exit(0);
}
/* EXPECT
 * 2 2 0
 * 1 1 5
 *
 */
