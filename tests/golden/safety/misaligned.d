/* NAME a load need not be aligned, as on any x86
 * OPTIONS -q
 */
BEGIN
{
	this->p = (char *)alloca(16);
	*(this->p + 1) = 7;
	printf("%d\n", *(long *)(this->p + 1));
	exit(0);
}
/* EXPECT
 * 7
 *
 */
