/* NAME the factor of llquantize() is an integer constant
 * TAG D_LLQUANT_FACTORTYPE
 */
BEGIN
{
	@total = llquantize(1, timestamp, 0, 3, 10);
}
