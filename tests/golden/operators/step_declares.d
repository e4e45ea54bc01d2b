/* NAME ++ and -- declare what they change
 * OPTIONS -q
 */
BEGIN
{
	a++;
	b--;
	self->c++;
	d[1]++;
	printf("%d %d %d %d %d\n", a, b, self->c, d[1], e++);
	exit(0);
}
/* EXPECT
 * 1 -1 1 1 0
 *
 */
