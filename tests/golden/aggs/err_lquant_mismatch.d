/* NAME the base of lquantize() lies below its limit
 * TAG D_LQUANT_MISMATCH
 */
BEGIN
{
	@total = lquantize(1, 100, 0, 10);
}
