/* NAME vtimestamp does not run backwards
 * OPTIONS -q
 */
BEGIN
{
	a = vtimestamp;
}
BEGIN
{
	printf("%d\n", vtimestamp >= a);
	exit(0);
}
/* EXPECT
 * 1
 *
 */
