/* NAME strings come without quotes
 * OPTIONS -q
 */
BEGIN
{
	printf("%s|\n", json("{\"a\": \"b c\"}", "a"));
	exit(0);
}
/* EXPECT
 * b c|
 *
 */
