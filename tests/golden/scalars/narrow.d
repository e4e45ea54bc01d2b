/* NAME a value is cut to the declared type
 * OPTIONS -q
 */
char c;
unsigned int u;
short s;

BEGIN
{
	c = 300;
	u = -1;
	s = 70000;
	printf("%d %u %d\n", c, u, s);
	exit(0);
}
/* EXPECT
 * 44 4294967295 4464
 *
 */
