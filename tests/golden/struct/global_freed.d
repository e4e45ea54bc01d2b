/* NAME a structure that 0 was assigned to is zero when one of its parts is assigned
 * OPTIONS -q
 */
struct point { int x; int y; } p;
BEGIN
{
	p.x = 1;
	p.y = 2;
	p = 0;
	p.y = 3;
	printf("%d %d\n", p.x, p.y);
	exit(0);
}
/* EXPECT
 * 0 3
 *
 */
