/* NAME escapes in strings
 * OPTIONS -q
 */
BEGIN
{
	printf("%s", "a\tb\\c\"d\x41\101\n");
	exit(0);
}
/* EXPECT
 * a	b\c"dAA
 *
 */
