/* NAME trace() shows the bits of a floating-point value
 * OPTIONS -q
 */
double d;
float f;

BEGIN
{
	this->p = (long *)alloca(16);
	*this->p = 0x3ff8000000000000;
	*(int *)(this->p + 1) = 0x3fc00000;
	d = *(double *)this->p;
	f = *(float *)(this->p + 1);
	trace(d);
	trace(" ");
	trace(f);
	exit(0);
}
/* EXPECT
 * 4609434218613702656 1069547520
 */
