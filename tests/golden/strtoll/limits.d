/* NAME strtoll() holds 64 bits
 * OPTIONS -q
 */
BEGIN
{
	printf("%d %d\n", strtoll("9223372036854775807"), strtoll("-9223372036854775808"));
	exit(0);
}
/* EXPECT
 * 9223372036854775807 -9223372036854775808
 *
 */
