/* NAME extern declares, too
 * OPTIONS -q
 */
extern int x;
BEGIN
{
	x = 2;
	printf("%d\n", x);
	exit(0);
}
/* EXPECT
 * 2
 *
 */
