/* NAME a third argument that is not positive limits nothing
 * RUN $DTRACE -q -s $SCRIPT
 */
BEGIN { this->p = alloca(4); bcopy("abc", this->p, 4); tracemem(this->p, 4, 0); exit(0); }
/* EXPECT
 *
 *              0  1  2  3  4  5  6  7  8  9  a  b  c  d  e  f  0123456789abcdef
 *          0: 61 62 63 00                                      abc.
 *
 */
