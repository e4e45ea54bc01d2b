/* NAME vtimestamp does not run backwards
 * OPTIONS -q
 * SKIP does not compile: inlines nest too deeply
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
