/* NAME flags and width may stand before the @
 * OPTIONS -q
 */
BEGIN
{
	@["x"] = sum(42);
	printa("[%s] [%8@d] [%-8@d] [%08@x] [%@8d] [%-@8d]\n", @, @, @, @, @);
	exit(0);
}
/* EXPECT
 * [x] [      42] [42      ] [0000002a] [      42] [42      ]
 *
 */
