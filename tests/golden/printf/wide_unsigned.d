/* NAME 64 bits without sign
 * OPTIONS -q
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
