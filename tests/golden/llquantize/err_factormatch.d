/* NAME the factor of one llquantize() does not change
 * TAG D_LLQUANT_FACTORMATCH
 */
BEGIN
{
	@total = llquantize(1, 10, 0, 3, 20);
	@total = llquantize(1, 20, 0, 3, 20);
}
