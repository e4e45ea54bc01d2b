/* NAME print() prints a struct with its members
 * OPTIONS -q
 */
struct point {
	int x;
	int y;
};
struct point p;
BEGIN
{
	p.x = 1;
	p.y = 2;
	print(p);
	exit(0);
}
/* EXPECT
 * struct point {
 *     int x = 0x1
 *     int y = 0x2
 * }
 *
 */
