/* NAME bcopy() writes into scratch memory only
 * OPTIONS -q
 */
BEGIN
{
	bcopy((void *)alloca(4), (void *)64, 4);
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
 * error on enabled probe ID 1 (ID 1: dtrace:::BEGIN): invalid address (0x40) in action #1
 */
