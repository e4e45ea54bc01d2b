/* NAME a cast cuts to fewer bits, or to another sign; other casts leave all 64 bits
 * OPTIONS -q
 */
BEGIN
{
	n = 1 << 30;
	c = (char)100;
	b = (unsigned char)255;
	m = -5;
	printf("%d %d\n", (long long)(n * 4), (long long)(int)(n * 4));
	printf("%d\n", (long long)(unsigned int)(n * 4));
	printf("%d %d\n", (long long)(char)(n * 4 + 200), (long long)(unsigned int)m);
	printf("%d %d\n", (long long)(short)(c * c * c), (long long)(unsigned short)(c * c * c));
	printf("%d\n", (long long)(int)(b * b * b * b * b));
	printf("%d %d\n", (long long)-1U, (long long)~0U);
	exit(0);
}
/* EXPECT
 * 4294967296 4294967296
 * 0
 * -56 4294967291
 * 1000000 16960
 * 1078203909375
 * 4294967295 -1
 *
 */
