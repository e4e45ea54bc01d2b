/* NAME strjoin() joins two strings
 * OPTIONS -q
 */
BEGIN
{
	printf("%s|%s|%s\n", strjoin("foo", "bar"), strjoin("", "x"), strjoin("x", ""));
	exit(0);
}
/* EXPECT
 * foobar|x|x
 *
 */
