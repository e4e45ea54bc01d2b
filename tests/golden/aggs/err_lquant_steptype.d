/* NAME the step of lquantize() is an integer constant
 * TAG D_LQUANT_STEPTYPE
 */
BEGIN
{
	@total = lquantize(1, 0, 100, timestamp);
}
