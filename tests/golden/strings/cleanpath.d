/* NAME cleanpath() removes . and .. and double slashes
 * OPTIONS -q
 */
BEGIN
{
	printf("%s %s %s\n", cleanpath("/a/./b//c"), cleanpath("/a/b/../c"), cleanpath("/.."));
	exit(0);
}
/* EXPECT
 * /a/b/c /a/c /
 *
 */
