/* NAME the low magnitude fits 16 bits
 * TAG D_LLQUANT_LOWVAL
 */
BEGIN
{
	@total = llquantize(1, 10, 100000, 3, 10);
}
