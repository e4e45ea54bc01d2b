/* NAME the base of lquantize() fits 32 bits
 * TAG D_LQUANT_BASEVAL
 */
BEGIN
{
	@total = lquantize(1, 5000000000, 6000000000, 10);
}
