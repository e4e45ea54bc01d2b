/* NAME pointer arithmetic counts elements
 * OPTIONS -q
 */
BEGIN
{
	p = (int *)0x1000;
	printf("%p %p %d\n", p + 1, p - 1, (p + 4) - p);
	q = (char *)p;
	printf("%p\n", q + 1);
	exit(0);
}
/* EXPECT
 * 1004 ffc 4
 * 1001
 *
 */
