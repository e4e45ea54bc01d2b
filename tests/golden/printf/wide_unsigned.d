/* NAME 64 bits without sign
 * OPTIONS -q
 * SKIP prints 18446744073709551615 -1 ffffffffffffffff
 */
BEGIN
{
	printf("%u %d %x\n", 0xffffffffffffffff, 0xffffffffffffffff, 0xffffffffffffffff);
	exit(0);
}
/* EXPECT
 * 18446744073709551615 18446744073709551615 ffffffffffffffff
 *
 */
