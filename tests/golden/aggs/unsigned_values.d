/* NAME values count as signed ones, whatever their type
 * OPTIONS -q
 */
BEGIN
{
	x = (uint64_t)-1;
	@low = min(x);
	@low = min(1);
	@high = max(x);
	@high = max(1);
	@mean = avg(x);
	@mean = avg(1);
	@spread = stddev(x);
	@spread = stddev(1);
	printa("%@d %@d %@d %@d\n", @low, @high, @mean, @spread);
	@q = quantize(x);
	@l = lquantize(x, 0, 4, 2);
	@ll = llquantize(x, 10, 0, 1, 10);
	exit(0);
}
/* EXPECT
 * -1 1 0 1
 *
 *
 *            value  ------------- Distribution ------------- count    $
 *               -2 |                                         0        $
 *               -1 |@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@ 1        $
 *                0 |                                         0        $
 *
 *
 *            value  ------------- Distribution ------------- count    $
 *              < 0 |@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@ 1        $
 *                0 |                                         0        $
 *
 *
 *            value  ------------- Distribution ------------- count    $
 *              < 1 |@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@ 1        $
 *                1 |                                         0        $
 *
 */
