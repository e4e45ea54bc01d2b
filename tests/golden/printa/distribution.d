/* NAME %@d of a distribution prints the distribution
 * OPTIONS -q
 */
BEGIN
{
	@["k"] = quantize(1);
	printa("%s:%@d", @);
	exit(0);
}
/* EXPECT
 * k:
 *            value  ------------- Distribution ------------- count    $
 *                0 |                                         0        $
 *                1 |@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@ 1        $
 *                2 |                                         0        $
 *
 */
