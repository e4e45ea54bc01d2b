/* NAME offsetof counts bytes from the start
 * OPTIONS -q
 */
struct s {
	char a;
	short b;
	int c;
	long d;
	char e[3];
	struct {
		int x;
		int y;
	} f;
};
BEGIN
{
	printf("%d %d %d ", offsetof(struct s, a), offsetof(struct s, b), offsetof(struct s, c));
	printf("%d %d %d\n", offsetof(struct s, d), offsetof(struct s, e), offsetof(struct s, f));
	exit(0);
}
/* EXPECT
 * 0 2 4 8 16 20
 *
 */
