/* NAME members of a struct variable
 * OPTIONS -q
 */
struct point {
	int x;
	int y;
	char name[8];
};
struct point p;
BEGIN
{
	p.x = 3;
	p.y = -4;
	printf("%d %d %d\n", p.x, p.y, sizeof (p));
	exit(0);
}
/* EXPECT
 * 3 -4 16
 *
 */
