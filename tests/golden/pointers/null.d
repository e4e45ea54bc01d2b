/* NAME the null pointer is a fault
 * OPTIONS -q
 */
ERROR
{
	printf("fault %d at %x\n", arg4, arg5);
	exit(0);
}
BEGIN
{
	x = *(int *)NULL;
}
/* EXPECT
 * fault 1 at 0
 *
 */
