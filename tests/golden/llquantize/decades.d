/* NAME llquantize() has linear steps within each power of ten
 * OPTIONS -q
 */
BEGIN
{
	@ = llquantize(5, 10, 0, 2, 10);
	@ = llquantize(42, 10, 0, 2, 10);
	exit(0);
}
/* EXPECT
 *
 *
 *            value  ------------- Distribution ------------- count    $
 *                4 |                                         0        $
 *                5 |@@@@@@@@@@@@@@@@@@@@                     1        $
 *                6 |                                         0        $
 *                7 |                                         0        $
 *                8 |                                         0        $
 *                9 |                                         0        $
 *               10 |                                         0        $
 *               20 |                                         0        $
 *               30 |                                         0        $
 *               40 |@@@@@@@@@@@@@@@@@@@@                     1        $
 *               50 |                                         0        $
 *
 */
