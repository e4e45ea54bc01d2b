/* NAME a character of a string
 * OPTIONS -q
 */
BEGIN
{
	s = "abc";
	printf("%c %d\n", s[1], s[2]);
	exit(0);
}
/* EXPECT
 * b 99
 *
 */
