/* NAME string is a type
 * OPTIONS -q
 */
string s;
BEGIN
{
	s = "abc";
	printf("%s %d\n", s, sizeof (string));
	exit(0);
}
/* EXPECT
 * abc 256
 *
 */
