/* NAME a store goes to memory of D only
 * OPTIONS -q
 */
BEGIN
{
	*(int *)4096 = 1;
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
 * error on enabled probe ID 1 (ID 1: dtrace:::BEGIN): invalid address (0x1000) in action #1
 */
