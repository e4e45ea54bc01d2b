/* NAME a string of zero is a fault to read
 * OPTIONS -q
 */
ERROR
{
	printf("fault %d\n", arg4);
	exit(0);
}
BEGIN
{
	x = strlen((char *)0);
}
/* EXPECT
 * fault 1
 *
 */
