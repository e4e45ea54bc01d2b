/* NAME the low magnitude of one llquantize() does not change
 * TAG D_LLQUANT_LOWMATCH
 */
BEGIN
{
	@total = llquantize(1, 10, 0, 3, 20);
	@total = llquantize(1, 10, 1, 3, 20);
}
