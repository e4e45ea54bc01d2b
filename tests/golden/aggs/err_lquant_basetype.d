/* NAME the base of lquantize() is an integer constant
 * TAG D_LQUANT_BASETYPE
 */
BEGIN
{
	@total = lquantize(1, timestamp, 100, 10);
}
