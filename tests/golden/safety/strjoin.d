/* NAME what does not fit into a string is cut off
 * OPTIONS -q -x strsize=8
 */
BEGIN
{
	printf("%s|\n", strjoin("abcd", "efgh"));
	exit(0);
}
/* EXPECT
 * abcdefgh|
 *
 */
