/* NAME llquantize()'s last argument is added instead of one
 * OPTIONS -q
 */
BEGIN
{
	@ = llquantize(5, 10, 0, 1, 10, 4);
	exit(0);
}
/* EXPECT
 *
 *
 *            value  ------------- Distribution ------------- count    $
 *                4 |                                         0        $
 *                5 |@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@ 4        $
 *                6 |                                         0        $
 *
 */
