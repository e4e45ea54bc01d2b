/* NAME without a step lquantize() counts every value
 * OPTIONS -q
 */
BEGIN
{
	@ = lquantize(2, 0, 5);
	@ = lquantize(3, 0, 5);
	exit(0);
}
/* EXPECT
 *
 *
 *            value  ------------- Distribution ------------- count    $
 *                1 |                                         0        $
 *                2 |@@@@@@@@@@@@@@@@@@@@                     1        $
 *                3 |@@@@@@@@@@@@@@@@@@@@                     1        $
 *                4 |                                         0        $
 *
 */
