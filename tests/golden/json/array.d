/* NAME an array comes as its text
 * OPTIONS -q
 */
BEGIN
{
	printf("%s|\n", json("{\"a\": [1, 2]}", "a"));
	exit(0);
}
/* EXPECT
 * [1, 2]|
 *
 */
