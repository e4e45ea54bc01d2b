/* NAME zero has a bucket of its own
 * OPTIONS -q
 */
BEGIN
{
	@ = quantize(0);
	exit(0);
}
/* EXPECT
 *
 *
 *            value  ------------- Distribution ------------- count    $
 *               -1 |                                         0        $
 *                0 |@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@ 1        $
 *                1 |                                         0        $
 *
 */
