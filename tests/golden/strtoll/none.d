/* NAME strtoll() of no number is zero
 * OPTIONS -q
 */
BEGIN
{
	printf("%d %d\n", strtoll(""), strtoll("abc"));
	exit(0);
}
/* EXPECT
 * 0 0
 *
 */
