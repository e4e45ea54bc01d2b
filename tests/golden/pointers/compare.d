/* NAME pointers compare, also with zero
 * OPTIONS -q
 */
BEGIN
{
	p = (int *)8;
	q = (int *)16;
	printf("%d %d %d %d\n", p < q, p == q, p != 0, (int *)0 == NULL);
	exit(0);
}
/* EXPECT
 * 1 0 1 1
 *
 */
