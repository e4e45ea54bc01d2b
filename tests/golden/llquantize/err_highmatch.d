/* NAME the high magnitude of one llquantize() does not change
 * TAG D_LLQUANT_HIGHMATCH
 */
BEGIN
{
	@total = llquantize(1, 10, 0, 3, 20);
	@total = llquantize(1, 10, 0, 4, 20);
}
