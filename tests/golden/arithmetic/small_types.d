/* NAME chars and shorts stay what they are, and print as such
 * OPTIONS -q
 */
char c;
unsigned char u;
short s;
BEGIN
{
	c = 100;
	u = 200;
	s = 100;
	printf("%d %d %d %d\n", c + c, sizeof(c + c), u + c, u + u);
	printf("%d %d\n", u + s, sizeof(u + s));
	printf("%d %d %d\n", -u, ~u, c << 1);
	printf("%d %d\n", c + 100, sizeof(c + 100));
	printf("%d\n", (c + c) > 127);
	c = 200;
	printf("%d\n", c);
	exit(0);
}
/* EXPECT
 * -56 1 44 144
 * 300 2
 * 56 55 -56
 * 200 4
 * 1
 * -56
 *
 */
