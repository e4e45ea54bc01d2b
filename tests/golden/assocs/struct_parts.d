/* NAME members of an associative array's structures may be assigned before a whole one
 * OPTIONS -q
 */
struct point { int x; int y; };
struct point a[int];
self struct point b[string, int];
int i;
BEGIN
{
	a[1].y = 2;
	a[2].x = 3;
	printf("%d %d, %d %d\n", a[1].x, a[1].y, a[2].x, a[2].y);
	self->b["x", 1].x = 4;
	self->b["x", 1].y += 5;
	self->b["x", 1].y++;
	printf("%d %d\n", self->b["x", 1].x, self->b["x", 1].y);
	a[i++].x = 8;
	a[i++].x += 9;
	printf("%d %d %d\n", i, a[0].x, a[1].x);
	exit(0);
}
/* EXPECT
 * 0 2, 3 0
 * 4 6
 * 2 8 9
 *
 */
