/* NAME the limit of lquantize() fits 32 bits
 * TAG D_LQUANT_LIMVAL
 */
BEGIN
{
	@total = lquantize(1, 0, 6000000000, 10);
}
