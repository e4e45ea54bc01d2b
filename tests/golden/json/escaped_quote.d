/* NAME an escaped quote does not end a string
 * OPTIONS -q
 */
BEGIN
{
	printf("%s|\n", json("{\"a\": \"x\\\"y\", \"b\": 2}", "b"));
	exit(0);
}
/* EXPECT
 * 2|
 *
 */
