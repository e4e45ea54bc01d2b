/* NAME a character of a string
 * OPTIONS -q
 * SKIP does not compile: operator [ ] requires an array or pointer and an integer index
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
