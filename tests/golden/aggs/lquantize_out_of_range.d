/* NAME lquantize() counts what is below its base and at or beyond its limit
 * OPTIONS -q
 */
BEGIN
{
	@ = lquantize(-100, -10, 10, 5);
	@ = lquantize(-10, -10, 10, 5);
	@ = lquantize(9, -10, 10, 5);
	@ = lquantize(10, -10, 10, 5);
	exit(0);
}
/* EXPECT
 *
 *
 *            value  ------------- Distribution ------------- count    $
 *            < -10 |@@@@@@@@@@                               1        $
 *              -10 |@@@@@@@@@@                               1        $
 *               -5 |                                         0        $
 *                0 |                                         0        $
 *                5 |@@@@@@@@@@                               1        $
 *            >= 10 |@@@@@@@@@@                               1        $
 *
 */
