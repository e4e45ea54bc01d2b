/* NAME what is stored or recorded is cut, but for 8 bytes in a variable of 4
 * OPTIONS -q
 */
short a[4];
self char declared;
BEGIN
{
	x = 0;
	x = 10000000000;
	self->x = 0;
	self->x = 10000000000;
	this->x = 0;
	this->x = 10000000000;
	m["x"] = 0;
	m["x"] = 10000000000;
	printf("%d %d %d %d\n", x, self->x, this->x, m["x"]);
	printf("%d %d\n", sizeof(x), sizeof(m["x"]));

	wide = 0LL;
	wide = (x = 10000000000);
	printf("%d %d\n", x, wide);
	wide = (x *= 10000000000);
	printf("%d\n", wide == x);

	c = (char)127;
	wide = ++c;
	printf("%d %d\n", c, wide);
	wide = (a[1] = 70000);
	printf("%d %d\n", a[1], wide);
	self->declared = 200;
	wide = self->declared;
	printf("%d\n", wide);
	x = (char)100 + (char)100;
	printf("%d\n", x);
	exit(0);
}
/* EXPECT
 * 1410065408 1410065408 1410065408 1410065408
 * 4 4
 * 1410065408 10000000000
 * 1
 * -128 -128
 * 4464 70000
 * -56
 * 200
 *
 */
