/* NAME the range of lquantize() holds at least one step
 * TAG D_LQUANT_STEPLARGE
 */
BEGIN
{
	@total = lquantize(1, 0, 10, 100);
}
