/* NAME a key is cut to the type that the array's first use gave it
 * OPTIONS -q
 */
BEGIN
{
	n = 1 << 30;
	a[5] = 1;
	b[(char)100] = 2;
	@[n * 4] = count();
	printf("%d %d %d\n", a[4294967301], a[n * 4 + 5], a[(char)5]);
	printf("%d %d\n", b[100], b[356]);
	exit(0);
}
/* EXPECT
 * 1 1 1
 * 2 2
 *
 *         0                1
 */
