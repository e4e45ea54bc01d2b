/* NAME ERROR sees what failed and where
 * OPTIONS -q
 */
ERROR
{
	printf("epid %d action %d fault %d address %d\n", arg1, arg2, arg4, arg5);
	exit(0);
}
BEGIN
{
	x = *(char *)8;
}
/* EXPECT
 * epid 2 action 1 fault 1 address 8
 *
 */
/* STDERR
 * error on enabled probe ID 2 (ID 1: dtrace:::BEGIN): invalid address (0x8) in action #1
 */
