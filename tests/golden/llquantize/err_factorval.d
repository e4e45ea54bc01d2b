/* NAME the factor of llquantize() fits 16 bits
 * TAG D_LLQUANT_FACTORVAL
 */
BEGIN
{
	@total = llquantize(1, 100000, 0, 3, 10);
}
