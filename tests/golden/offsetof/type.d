/* NAME offsetof is a size_t
 * OPTIONS -q
 */
struct in {
	char a;
	long b;
};
struct out {
	char c;
	struct in in;
	int list[3];
	unsigned int bits : 3;
};

BEGIN
{
	printf("%d %d\n", sizeof(offsetof(struct in, b)), offsetof(struct in, a) - 1 > 0);
	exit(0);
}
/* EXPECT
 * 8 1
 *
 */
