/* NAME the key of a distribution stands on its own line
 * OPTIONS -q
 */
BEGIN
{
	@["name"] = quantize(1);
	exit(0);
}
/* EXPECT
 *
 *   name                                              $
 *            value  ------------- Distribution ------------- count    $
 *                0 |                                         0        $
 *                1 |@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@ 1        $
 *                2 |                                         0        $
 *
 */
