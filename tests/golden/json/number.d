/* NAME strtoll() of json() is a number
 * OPTIONS -q
 */
BEGIN
{
	printf("%d\n", strtoll(json("{\"n\":-41}", "n")) + 1);
	exit(0);
}
/* EXPECT
 * -40
 *
 */
