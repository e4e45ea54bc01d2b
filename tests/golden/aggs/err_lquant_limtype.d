/* NAME the limit of lquantize() is an integer constant
 * TAG D_LQUANT_LIMTYPE
 * SKIP the command says D_UNKNOWN instead
 */
BEGIN
{
	@total = lquantize(1, 0, timestamp, 10);
}
