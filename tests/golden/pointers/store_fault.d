/* NAME nothing but scratch memory may be written
 * OPTIONS -q
 */
ERROR
{
	printf("fault\n");
	exit(0);
}
BEGIN
{
	*(int *)16 = 1;
}
/* EXPECT
 * fault
 *
 */
