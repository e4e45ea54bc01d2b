/* NAME parts of a thread-local structure may be assigned before the whole; the rest is zero
 * OPTIONS -q
 */
struct point { int x; int y; char name[8]; int flag:3; };
self struct point p;
self struct point q;
BEGIN
{
	self->p.y = 7;
	printf("%d %d\n", self->p.x, self->p.y);
	self->p.name[0] = 'a';
	self->p.name[1] = 'b';
	self->p.flag = 3;
	self->p.x += 5;
	self->p.x++;
	printf("%d %d %s %d\n", self->p.x, self->p.y, self->p.name, self->p.flag);
	self->q = self->p;
	self->q.x = 1;
	printf("%d %d\n", self->p.x, self->q.x);
}
BEGIN
{
	printf("%d %s\n", self->q.y, self->q.name);
	self->p = 0;
	self->p.x = 2;
	printf("%d %d\n", self->p.x, self->p.y);
	exit(0);
}
/* EXPECT
 * 0 7
 * 6 7 ab 3
 * 6 1
 * 7 ab
 * 2 0
 *
 */
