/* NAME json() of what is not there is NULL
 * OPTIONS -q
 */
BEGIN
{
	printf("%d %d\n", json("{\"a\":1}", "b") == NULL, json("[1]", "[3]") == NULL);
	exit(0);
}
/* EXPECT
 * 1 1
 *
 */
