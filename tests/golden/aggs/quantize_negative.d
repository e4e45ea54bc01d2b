/* NAME negative values fall into negative powers of two
 * OPTIONS -q
 */
BEGIN
{
	@ = quantize(-1);
	@ = quantize(-5);
	exit(0);
}
/* EXPECT
 *
 *
 *            value  ------------- Distribution ------------- count    $
 *               -8 |                                         0        $
 *               -4 |@@@@@@@@@@@@@@@@@@@@                     1        $
 *               -2 |                                         0        $
 *               -1 |@@@@@@@@@@@@@@@@@@@@                     1        $
 *                0 |                                         0        $
 *
 */
