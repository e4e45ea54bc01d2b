/* NAME several variables in one declaration
 * OPTIONS -q
 */
int a, *b, c[3];
BEGIN
{
	a = 1;
	c[2] = 3;
	printf("%d %d %d %d\n", a, b == NULL, c[2], sizeof (c));
	exit(0);
}
/* EXPECT
 * 1 1 3 12
 *
 */
