/* NAME the base of lquantize() is an integer constant
 * TAG D_LQUANT_BASETYPE
 * SKIP the command says D_UNKNOWN instead
 */
BEGIN
{
	@total = lquantize(1, timestamp, 100, 10);
}
