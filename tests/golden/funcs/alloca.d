/* NAME alloca() gives zeroed scratch memory
 * OPTIONS -q
 */
BEGIN
{
	this->p = (char *)alloca(8);
	printf("%d %d\n", this->p[0], this->p[7]);
	this->p[7] = 5;
	printf("%d\n", this->p[7]);
	exit(0);
}
/* EXPECT
 * 0 0
 * 5
 *
 */
