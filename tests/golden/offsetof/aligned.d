/* NAME members are aligned as in C
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
	printf("%d %d %d\n", offsetof(struct in, b), offsetof(struct out, in), offsetof(struct out, list));
	exit(0);
}
/* EXPECT
 * 8 8 24
 *
 */
