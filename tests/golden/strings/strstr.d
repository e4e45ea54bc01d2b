/* NAME strstr() finds a string in a string
 * OPTIONS -q
 */
BEGIN
{
	printf("%s %s\n", strstr("one two two", "two"), strstr("abc", ""));
	printf("%d\n", strstr("abc", "z") == NULL);
	exit(0);
}
/* EXPECT
 * two two abc
 * 1
 *
 */
