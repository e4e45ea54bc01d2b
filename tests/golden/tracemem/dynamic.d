/* NAME tracemem()'s third argument limits what is printed
 * OPTIONS -q
 */
BEGIN
{
	this->p = (char *)alloca(6);
	bcopy("abcdef", this->p, 6);
	this->n = 3;
	tracemem(this->p, 6, this->n);
	exit(0);
}
/* EXPECT
 *
 *              0  1  2  3  4  5  6  7  8  9  a  b  c  d  e  f  0123456789abcdef
 *          0: 61 62 63                                         abc
 *
 */
