/* NAME scratch memory may be written through a pointer
 * OPTIONS -q
 */
BEGIN
{
	p = (int *)alloca(sizeof (int) * 2);
	*p = 11;
	*(p + 1) = 22;
	printf("%d %d\n", p[0], p[1]);
	exit(0);
}
/* EXPECT
 * 11 22
 *
 */
