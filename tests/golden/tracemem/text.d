/* NAME tracemem() shows text as bytes, too
 * OPTIONS -q
 */
BEGIN
{
	this->p = (char *)alloca(6);
	bcopy("hello", this->p, 6);
	tracemem(this->p, 6);
	exit(0);
}
/* EXPECT
 *
 *              0  1  2  3  4  5  6  7  8  9  a  b  c  d  e  f  0123456789abcdef
 *          0: 68 65 6c 6c 6f 00                                hello.
 *
 */
