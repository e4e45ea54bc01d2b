/* NAME llquantize() counts what lies below and above its range
 * OPTIONS -q
 */
BEGIN
{
	@ = llquantize(0, 10, 0, 1, 10);
	@ = llquantize(100, 10, 0, 1, 10);
	exit(0);
}
/* EXPECT
 *
 *
 *            value  ------------- Distribution ------------- count    $
 *              < 1 |@@@@@@@@@@@@@@@@@@@@                     1        $
 *                1 |                                         0        $
 *                2 |                                         0        $
 *                3 |                                         0        $
 *                4 |                                         0        $
 *                5 |                                         0        $
 *                6 |                                         0        $
 *                7 |                                         0        $
 *                8 |                                         0        $
 *                9 |                                         0        $
 *               10 |                                         0        $
 *               20 |                                         0        $
 *               30 |                                         0        $
 *               40 |                                         0        $
 *               50 |                                         0        $
 *               60 |                                         0        $
 *               70 |                                         0        $
 *               80 |                                         0        $
 *               90 |                                         0        $
 *           >= 100 |@@@@@@@@@@@@@@@@@@@@                     1        $
 *
 */
