/* NAME a fault ends its clause, not the next ones
 * EXIT 0
 * OPTIONS -q
 */
BEGIN
{
	printf("one\n");
}
BEGIN
{
	x = *(int *)0;
	printf("never\n");
}
BEGIN
{
	printf("three\n");
	exit(0);
}
/* EXPECT
 * one
 * three
 *
 */
/* STDERR
 * error on enabled probe ID 2 (ID 1: dtrace:::BEGIN): invalid address (0x0) in action #1
 */
