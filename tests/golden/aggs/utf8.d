/* NAME bars are blocks with encoding=utf8
 * OPTIONS -q -x encoding=utf8
 */
BEGIN
{
	@ = lquantize(1, 0, 10, 1, 5);
	@ = lquantize(2, 0, 10, 1, 3);
	exit(0);
}
/* EXPECT
 *
 *
 *            value  ------------- Distribution ------------- count    $
 *                0 |                                         0        $
 *                1 |█████████████████████████                5        $
 *                2 |███████████████                          3        $
 *                3 |                                         0        $
 *
 */
