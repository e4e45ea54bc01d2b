/* NAME a pointer may be indexed
 * OPTIONS -q
 */
BEGIN
{
	p = (int *)alloca(16);
	p[0] = 1;
	p[3] = 4;
	printf("%d %d %d\n", p[0], p[3], *(p + 3));
	exit(0);
}
/* EXPECT
 * 1 4 4
 *
 */
