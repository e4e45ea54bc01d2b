/* NAME a load from NULL is a fault
 * OPTIONS -q
 */
BEGIN
{
	trace(*(int *)NULL);
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
 * error on enabled probe ID 1 (ID 1: dtrace:::BEGIN): invalid address (0x0) in action #1
 */
