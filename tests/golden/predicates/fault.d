/* NAME a fault in a predicate is action 0 and the clause does not run
 * OPTIONS -q
 */
BEGIN / *(int *)0 == 1 /
{
	printf("never\n");
}
BEGIN
{
	exit(0);
}
/* EXPECT
 *
 */
/* STDERR
 * error on enabled probe ID 1 (ID 1: dtrace:::BEGIN): invalid address (0x0) in predicate
 */
