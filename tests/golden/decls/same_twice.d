/* NAME a variable may be declared twice with one type
 * OPTIONS -q
 */
int x;
int x;
BEGIN
{
	x = 4;
	printf("%d\n", x);
	exit(0);
}
/* EXPECT
 * 4
 *
 */
