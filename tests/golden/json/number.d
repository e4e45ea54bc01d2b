/* NAME numbers come as they stand
 * OPTIONS -q
 */
BEGIN
{
	printf("%s|\n", json("{\"a\": -1.5e3}", "a"));
	exit(0);
}
/* EXPECT
 * -1.5e3|
 *
 */
