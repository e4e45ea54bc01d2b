/* NAME chars and shorts are promoted to int
 * OPTIONS -q
 */
char c;
BEGIN
{
	c = 100;
	printf("%d\n", c + c);
	c = 200;
	printf("%d\n", c);
	exit(0);
}
/* EXPECT
 * 200
 * -56
 *
 */
