/* NAME substr() takes a part, counting from the end when negative
 * OPTIONS -q
 */
BEGIN
{
	printf("[%s] [%s] [%s] [%s]\n", substr("abcdefgh", 2), substr("abcdefgh", 2, 3),
	    substr("abcdefgh", -3), substr("abcdefgh", -3, 2));
	exit(0);
}
/* EXPECT
 * [cdefgh] [cde] [fgh] [fg]
 *
 */
