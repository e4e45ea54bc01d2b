/* NAME the base of one lquantize() does not change
 * TAG D_LQUANT_MATCHBASE
 */
BEGIN
{
	@total = lquantize(1, 0, 100, 10);
	@total = lquantize(1, 10, 100, 10);
}
