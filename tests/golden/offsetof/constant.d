/* NAME offsetof is a constant
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
int x[offsetof(struct in, b)];
inline int y = offsetof(struct in, b) + 1;

BEGIN
{
	printf("%d %d\n", sizeof(x), y);
	exit(0);
}
/* EXPECT
 * 32 9
 *
 */
