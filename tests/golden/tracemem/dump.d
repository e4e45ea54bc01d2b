/* NAME tracemem() shows bytes as hex and text
 * OPTIONS -q
 */
BEGIN
{
	this->p = (char *)alloca(20);
	bcopy("ABCDEFGHIJKLMNOPQRS", this->p, 20);
	this->p[3] = '\001';
	tracemem(this->p, 20);
	exit(0);
}
/* EXPECT
 *
 *              0  1  2  3  4  5  6  7  8  9  a  b  c  d  e  f  0123456789abcdef
 *          0: 41 42 43 01 45 46 47 48 49 4a 4b 4c 4d 4e 4f 50  ABC.EFGHIJKLMNOP
 *         10: 51 52 53 00                                      QRS.
 *
 */
