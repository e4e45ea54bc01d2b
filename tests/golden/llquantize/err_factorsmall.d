/* NAME the factor of llquantize() is at least two
 * TAG D_LLQUANT_FACTORSMALL
 */
BEGIN
{
	@total = llquantize(1, 1, 0, 3, 10);
}
