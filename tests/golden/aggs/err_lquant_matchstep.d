/* NAME the step of one lquantize() does not change
 * TAG D_LQUANT_MATCHSTEP
 */
BEGIN
{
	@total = lquantize(1, 0, 100, 10);
	@total = lquantize(1, 0, 100, 20);
}
