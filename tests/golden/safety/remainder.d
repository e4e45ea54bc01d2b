/* NAME a remainder by zero is a fault
 * OPTIONS -q
 */
int z;

BEGIN
{
	trace(7 % z);
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
 * error on enabled probe ID 1 (ID 1: dtrace:::BEGIN): divide-by-zero in action #1
 */
