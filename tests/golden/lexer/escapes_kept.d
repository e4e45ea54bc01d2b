/* NAME an unknown escape keeps its backslash, a character is never negative
 * OPTIONS -q
 */
BEGIN
{
	printf("%s %s\n", "a\zb", "it\'s\?");
	printf("%d %d %x %d\n", '\377', '\xff', '\z', '\'');
	exit(0);
}
/* EXPECT
 * a\zb it's?
 * 255 255 5c7a 39
 *
 */
