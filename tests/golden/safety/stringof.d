/* NAME stringof() a bad address is a fault
 * OPTIONS -q
 */
BEGIN
{
	trace(stringof((char *)8));
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
 * error on enabled probe ID 1 (ID 1: dtrace:::BEGIN): invalid address (0x8) in action #1
 */
