/* NAME nspec says how many speculations there are
 * OPTIONS -q -x nspec=3
 */
BEGIN
{
	a = speculation();
	b = speculation();
	c = speculation();
	d = speculation();
	printf("%d %d %d %d\n", a, b, c, d);
	exit(0);
}
/* EXPECT
 * 1 2 3 0
 *
 */
