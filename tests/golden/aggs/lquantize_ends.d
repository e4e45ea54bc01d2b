/* NAME lquantize() counts what lies below and above its range
 * OPTIONS -q
 */
BEGIN
{
	@ = lquantize(-1, 0, 30, 10);
	@ = lquantize(30, 0, 30, 10);
	exit(0);
}
/* EXPECT
 *
 *
 *            value  ------------- Distribution ------------- count    $
 *              < 0 |@@@@@@@@@@@@@@@@@@@@                     1        $
 *                0 |                                         0        $
 *               10 |                                         0        $
 *               20 |                                         0        $
 *            >= 30 |@@@@@@@@@@@@@@@@@@@@                     1        $
 *
 */
