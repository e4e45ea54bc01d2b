/* NAME bcopy() copies to scratch memory
 * OPTIONS -q
 */
BEGIN
{
	this->p = (char *)alloca(6);
	bcopy("hello", this->p, 6);
	this->p[0] = 'j';
	printf("%s\n", stringof(this->p));
	exit(0);
}
/* EXPECT
 * jello
 *
 */
