/* NAME the limit of one lquantize() does not change
 * TAG D_LQUANT_MATCHLIM
 */
BEGIN
{
	@total = lquantize(1, 0, 100, 10);
	@total = lquantize(1, 0, 200, 10);
}
