/* NAME %p prints hex
 * OPTIONS -q
 */
BEGIN
{
	printf("%p\n", (void *)0x1234);
	exit(0);
}
/* EXPECT
 * 1234
 *
 */
