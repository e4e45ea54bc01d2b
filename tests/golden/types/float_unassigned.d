/* NAME floating-point variables that were never assigned, or freed, are 0
 * OPTIONS -q
 */
double d;
double list[int];
self float kept;

BEGIN
{
	this->p = (long *)alloca(8);
	*this->p = 0x3ff8000000000000;
	printf("%g %g %g\n", d, list[1], self->kept);
	d = *(double *)this->p;
	list[1] = d;
	printf("%g %g\n", d, list[1]);
	d = 0;
	list[1] = 0;
	printf("%g %g\n", d, list[1]);
	exit(0);
}
/* EXPECT
 * 0 0 0
 * 1.5 1.5
 * 0 0
 *
 */
