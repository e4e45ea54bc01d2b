/* NAME json() of an object is its text
 * OPTIONS -q
 */
BEGIN
{
	printf("%s\n", json("{\"a\":{\"b\":1}}", "a"));
	exit(0);
}
/* EXPECT
 * {"b":1}
 *
 */
