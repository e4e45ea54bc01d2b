/* NAME what is no JSON gives NULL
 * OPTIONS -q
 */
BEGIN
{
	printf("%d %d %d\n", json("{", "a") == NULL, json("", "a") == NULL, json("{\"a\": [1]}", "a[1]") == NULL);
	exit(0);
}
/* EXPECT
 * 1 1 1
 *
 */
