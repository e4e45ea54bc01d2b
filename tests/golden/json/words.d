/* NAME true, false and null come as they stand
 * OPTIONS -q
 */
BEGIN
{
	printf("%s|\n", json("{\"a\": [true, false, null]}", "a[2]"));
	exit(0);
}
/* EXPECT
 * null|
 *
 */
