/* NAME bit-fields lie next to each other from the lowest bit up
 * OPTIONS -q
 */
struct bits {
	unsigned int a : 3;
	unsigned int b : 5;
	unsigned int c : 8;
};
union both {
	struct bits bits;
	unsigned int word;
};
union both u;
BEGIN
{
	u.word = 0x5aff & 0xfffd;
	printf("%d %d %x %d\n", u.bits.a, u.bits.b, u.bits.c, sizeof (struct bits));
	exit(0);
}
/* EXPECT
 * 5 31 5a 4
 *
 */
