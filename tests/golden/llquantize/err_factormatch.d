/* NAME the factor of one llquantize() does not change
 * TAG D_LLQUANT_FACTORMATCH
 * SKIP the command says D_UNKNOWN instead
 */
BEGIN
{
	@total = llquantize(1, 10, 0, 3, 20);
	@total = llquantize(1, 5, 0, 3, 20);
}
