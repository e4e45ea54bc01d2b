/* NAME qualifiers are accepted
 * OPTIONS -q
 */
const int c;
volatile int v;
BEGIN
{
	v = 3;
	printf("%d %d\n", c, v);
	exit(0);
}
/* EXPECT
 * 0 3
 *
 */
