/* NAME paths go through objects and arrays
 * OPTIONS -q
 */
BEGIN
{
	printf("%s|\n", json("{\"a\": [{\"b\": [1, [2, 3]]}]}", "a[0].b[1][1]"));
	exit(0);
}
/* EXPECT
 * 3|
 *
 */
