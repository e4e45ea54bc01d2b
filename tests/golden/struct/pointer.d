/* NAME members through a pointer
 * OPTIONS -q
 */
struct point {
	int x;
	int y;
};
BEGIN
{
	this->p = (struct point *)alloca(sizeof (struct point));
	this->p->x = 7;
	this->p->y = 8;
	printf("%d %d %d\n", this->p->x, this->p->y, (*this->p).y);
	exit(0);
}
/* EXPECT
 * 7 8 8
 *
 */
