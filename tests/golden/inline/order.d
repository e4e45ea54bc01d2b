/* NAME an inline uses what was declared before it
 * OPTIONS -q
 */
int x;
inline int twice = x * 2;
BEGIN
{
	x = 4;
	printf("%d ", twice);
	x = 5;
	printf("%d\n", twice);
	exit(0);
}
/* EXPECT
 * 8 10
 *
 */
