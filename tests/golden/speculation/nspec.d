/* NAME there is one speculation unless nspec says more
 * OPTIONS -q
 */
BEGIN
{
	a = speculation();
	b = speculation();
	printf("%d %d\n", a, b);
	exit(0);
}
/* EXPECT
 * 1 0
 *
 */
