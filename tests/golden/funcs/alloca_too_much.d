/* NAME alloca() of too much is a fault
 * OPTIONS -q
 */
ERROR
{
	printf("fault %d\n", arg4);
	exit(0);
}
BEGIN
{
	this->p = (char *)alloca(100000000);
	this->p[0] = 1;
}
/* EXPECT
 * fault 5
 *
 */
