/* NAME the first assignment gives a variable its type
 * OPTIONS -q
 */
BEGIN
{
	i = 1;
	s = "text";
	l = timestamp;
	printf("%d %s %d %d %d\n", i, s, sizeof (i), sizeof (l), l > 0);
	exit(0);
}
/* EXPECT
 * 1 text 4 8 1
 *
 */
