/* NAME a string's first character is what * gives
 * OPTIONS -q
 */
BEGIN
{
	s = "abc";
	printf("%c%c\n", *s, s[2]);
	exit(0);
}
/* EXPECT
 * ac
 *
 */
