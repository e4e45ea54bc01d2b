/* NAME %I prints an address that is a text already
 * OPTIONS -q
 */
BEGIN
{
	printf("%I|%12I|\n", "10.0.0.1", "::1");
	@["10.0.0.2"] = count();
	printa("%I %@d\n", @);
	exit(0);
}
/* EXPECT
 * 10.0.0.1|         ::1|
 * 10.0.0.2 1
 *
 */
