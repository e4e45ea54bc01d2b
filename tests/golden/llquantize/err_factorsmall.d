/* NAME the factor of llquantize() is at least two
 * TAG D_LLQUANT_FACTORSMALL
 * SKIP the command says D_UNKNOWN instead
 */
BEGIN
{
	@total = llquantize(1, 1, 0, 3, 10);
}
