/* NAME division by zero is a fault
 * OPTIONS -q
 */
ERROR
{
	printf("fault %d\n", arg4);
	exit(0);
}
BEGIN
{
	zero = 0;
	x = 1 / zero;
}
/* EXPECT
 * fault 4
 *
 */
/* STDERR
 * divide-by-zero in action #2
 */
