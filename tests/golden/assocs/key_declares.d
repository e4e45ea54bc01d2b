/* NAME what a key declares can be used by the value that is assigned
 * OPTIONS -q
 */
BEGIN
{
	a[i++] = i;
	printf("%d %d\n", i, a[0]);
	exit(0);
}
/* EXPECT
 * 1 0
 *
 */
