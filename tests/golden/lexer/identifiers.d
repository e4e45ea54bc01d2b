/* NAME names have letters, digits and underscores, and case counts
 * OPTIONS -q
 */
BEGIN
{
	_a1 = 1;
	_A1 = 2;
	printf("%d %d\n", _a1, _A1);
	exit(0);
}
/* EXPECT
 * 1 2
 *
 */
