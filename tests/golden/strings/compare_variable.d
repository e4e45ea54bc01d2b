/* NAME string variables compare by their characters
 * OPTIONS -q
 */
BEGIN
{
	a = "abc";
	b = strjoin("a", "bc");
	printf("%d %d\n", a == b, a < "abd");
	exit(0);
}
/* EXPECT
 * 1 1
 *
 */
