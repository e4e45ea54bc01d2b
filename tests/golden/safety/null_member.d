/* NAME a member of NULL is a fault with its address
 * OPTIONS -q
 */
struct s {
	long a, b;
};

BEGIN
{
	trace(((struct s *)NULL)->b);
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
