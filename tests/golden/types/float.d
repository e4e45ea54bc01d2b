/* NAME floating-point values can be declared, copied and printed
 * OPTIONS -q
 */
struct measured {
	int count;
	double mean;
	float low;
};
struct measured m;
double d;
float f;
self double kept;
double list[int];

BEGIN
{
	this->p = (long *)alloca(16);
	*this->p = 0x3ff8000000000000;
	*(int *)(this->p + 1) = 0x40200000;
	d = *(double *)this->p;
	f = *(float *)(this->p + 1);
	this->t = d;
	self->kept = this->t;
	list[7] = self->kept;
	m.mean = list[7];
	m.low = f;
	*(double *)this->p = m.mean;
	printf("%f %.2f %e %g|%8.1f|%-6g|\n", d, this->t, self->kept, list[7], m.mean, m.low);
	printf("%g %g %d %d\n", 1 ? d : m.mean, *(double *)this->p, sizeof (f), sizeof (m));
	print(m);
	print(d);
	exit(0);
}
/* EXPECT
 * 1.500000 1.50 1.500000e+00 1.5|     1.5|2.5   |
 * 1.5 1.5 4 24
 * struct measured {
 *     int count = 0
 *     double mean = 1.5
 *     float low = 2.5
 * }
 * double 1.5
 *
 */
