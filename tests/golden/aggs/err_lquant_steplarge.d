/* NAME the range of lquantize() holds at least one step
 * TAG D_LQUANT_STEPLARGE
 * SKIP the command says D_UNKNOWN instead
 */
BEGIN
{
	@total = lquantize(1, 0, 10, 100);
}
