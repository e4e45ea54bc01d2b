/* NAME parts of a clause-local structure may be assigned before the whole, and after it was freed
 * OPTIONS -q
 */
struct point { int x; int y; struct { long z[3]; } deep; };
this struct point p;
BEGIN
{
	this->p.deep.z[2] = 7;
	this->p.y = 1;
	printf("%d %d %d\n", this->p.x, this->p.y, this->p.deep.z[2]);
	this->p = 0;
	this->p.x = 3;
	printf("%d %d\n", this->p.x, this->p.y);
	exit(0);
}
/* EXPECT
 * 0 1 7
 * 3 0
 *
 */
