/* NAME a distribution with negative counts has its bars on both sides
 * OPTIONS -q
 */
BEGIN
{
	@ = quantize(2, 3);
	@ = quantize(-2, -3);
	exit(0);
}
/* EXPECT
 *
 *
 *            value  ------------- Distribution ------------- count    $
 *               -4                     |                     0        $
 *               -2           @@@@@@@@@@|                     -3       $
 *               -1                     |                     0        $
 *                0                     |                     0        $
 *                1                     |                     0        $
 *                2                     |@@@@@@@@@@           3        $
 *                4                     |                     0        $
 *
 */
