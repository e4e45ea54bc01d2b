/* NAME casts cut and extend
 * OPTIONS -q
 */
BEGIN
{
	x = 0x1234567890;
	printf("%x %x %x\n", (char)x & 0xff, (short)x & 0xffff, (int)x);
	printf("%d %d %d\n", (char)0x80, (unsigned char)0x80, (int64_t)(int)0xffffffff);
	exit(0);
}
/* EXPECT
 * 90 7890 34567890
 * -128 128 -1
 *
 */
