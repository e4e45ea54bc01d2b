/* NAME & | ^ ~ << >>
 * OPTIONS -q
 */
BEGIN
{
	printf("%x %x %x %x %x\n", 0xf0 & 0x3c, 0xf0 | 0x0f, 0xff ^ 0x0f, 1 << 8, 0x100 >> 4);
	exit(0);
}
/* EXPECT
 * 30 ff f0 100 10
 *
 */
