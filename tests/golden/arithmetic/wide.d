/* NAME operators work on 64 bits, whatever the types of their operands are
 * OPTIONS -q
 */
int n;
unsigned int u;
BEGIN
{
	self->t = timestamp;
	n = 1000000;
	u = 1;
	@ = sum(n * 65536);
}

BEGIN
/timestamp - self->t > 10 * 1000000000/
{
	printf("never\n");
}

BEGIN
/n * 65536 * 65536/
{
	printf("%d %d\n", 10 * 1000000000, n * 65536);
	printf("%x %x\n", (uint64_t)(1 << 40), (uint64_t)((u << 40) >> 8));
	printf("%s\n", lltostr(n * 65536));
	printf("%d %d\n", 2147483647 + 1 < 0, (2147483647 + 1) / 2);
	printf("%d %d\n", n << 12 << 20 ? 1 : 0, !(n << 32));
	printf("%d %d\n", (long long)(u - 2), (u - 2) / 2 == 0x7fffffffffffffff);
	exit(0);
}
/* EXPECT
 * 1410065408 1111490560
 * 10000000000 100000000
 * 65536000000
 * 0 1073741824
 * 1 0
 * -1 1
 *
 *       65536000000
 */
