/* NAME quantize() prints powers of two with a bar
 * OPTIONS -q
 */
BEGIN
{
	@ = quantize(1);
	@ = quantize(2);
	@ = quantize(3);
	@ = quantize(8);
	exit(0);
}
/* EXPECT
 *
 *
 *            value  ------------- Distribution ------------- count    $
 *                0 |                                         0        $
 *                1 |@@@@@@@@@@                               1        $
 *                2 |@@@@@@@@@@@@@@@@@@@@                     2        $
 *                4 |                                         0        $
 *                8 |@@@@@@@@@@                               1        $
 *               16 |                                         0        $
 *
 */
