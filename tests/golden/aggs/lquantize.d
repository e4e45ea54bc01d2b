/* NAME lquantize() prints equal steps
 * OPTIONS -q
 */
BEGIN
{
	@ = lquantize(5, 0, 100, 10);
	@ = lquantize(15, 0, 100, 10);
	@ = lquantize(19, 0, 100, 10);
	@ = lquantize(20, 0, 100, 10);
	exit(0);
}
/* EXPECT
 *
 *
 *            value  ------------- Distribution ------------- count    $
 *              < 0 |                                         0        $
 *                0 |@@@@@@@@@@                               1        $
 *               10 |@@@@@@@@@@@@@@@@@@@@                     2        $
 *               20 |@@@@@@@@@@                               1        $
 *               30 |                                         0        $
 *
 */
