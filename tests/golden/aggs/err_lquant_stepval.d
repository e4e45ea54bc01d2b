/* NAME the step of lquantize() fits 16 bits
 * TAG D_LQUANT_STEPVAL
 */
BEGIN
{
	@total = lquantize(1, 0, 1000000, 100000);
}
