/* NAME the document may be an array
 * OPTIONS -q
 */
BEGIN
{
	printf("%s %s\n", json("[\"zero\", \"one\"]", "[1]"), json("[[1,2],[3,4]]", "[1][0]"));
	exit(0);
}
/* EXPECT
 * one 3
 *
 */
