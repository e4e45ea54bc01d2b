/* NAME tracemem() of a bad address is a fault
 * OPTIONS -q
 */
BEGIN
{
	tracemem(128, 4);
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
 * error on enabled probe ID 1 (ID 1: dtrace:::BEGIN): invalid address (0x80) in action #1
 */
