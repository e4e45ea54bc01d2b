/* NAME stringof makes a string of a character array
 * OPTIONS -q
 */
BEGIN
{
	this->p = (char *)alloca(4);
	bcopy("abc", this->p, 4);
	printf("%s %s\n", stringof(this->p), stringof("x"));
	exit(0);
}
/* EXPECT
 * abc x
 *
 */
