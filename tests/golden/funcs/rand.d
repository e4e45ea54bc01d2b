/* NAME rand() gives different numbers
 * OPTIONS -q
 */
BEGIN
{
	a = rand();
	b = rand();
	c = rand();
	printf("%d\n", a != b || b != c);
	exit(0);
}
/* EXPECT
 * 1
 *
 */
