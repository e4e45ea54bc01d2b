/* NAME the limit of lquantize() is an integer constant
 * TAG D_LQUANT_LIMTYPE
 */
BEGIN
{
	@total = lquantize(1, 0, timestamp, 10);
}
