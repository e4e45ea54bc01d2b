/* NAME the step of lquantize() is an integer constant
 * TAG D_LQUANT_STEPTYPE
 * SKIP the command says D_UNKNOWN instead
 */
BEGIN
{
	@total = lquantize(1, 0, 100, timestamp);
}
