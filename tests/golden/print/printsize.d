/* NAME printsize cuts off what print() shows of a struct
 * OPTIONS -q -x printsize=8
 */
struct point {
	int a;
	int list[3];
	long far;
};
struct point p;

BEGIN
{
	p.a = 1;
	p.list[0] = 2;
	p.far = 3;
	print(p);
	print(p.far);
	exit(0);
}
/* EXPECT
 * struct point {
 *     int a = 0x1
 *     int [3] list = [ 0x2, ... ]
 *     long far = ...
 * }
 * long 0x3
 *
 */
