/* NAME quantize()'s second argument is added instead of one
 * OPTIONS -q
 */
BEGIN
{
	@ = quantize(4, 10);
	@ = quantize(16, 30);
	exit(0);
}
/* EXPECT
 *
 *
 *            value  ------------- Distribution ------------- count    $
 *                2 |                                         0        $
 *                4 |@@@@@@@@@@                               10       $
 *                8 |                                         0        $
 *               16 |@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@           30       $
 *               32 |                                         0        $
 *
 */
