/* NAME alloca() of a negative size is a fault
 * OPTIONS -q
 */
BEGIN
{
	x = alloca(-1);
	printf("not reached\n");
}
BEGIN
{
	printf("next clause\n");
	exit(0);
}
/* EXPECT
 * next clause
 *
 */
/* STDERR
 * error on enabled probe ID 1 (ID 1: dtrace:::BEGIN): out of scratch space in action #1
 */
