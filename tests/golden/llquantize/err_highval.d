/* NAME the high magnitude fits 16 bits
 * TAG D_LLQUANT_HIGHVAL
 */
BEGIN
{
	@total = llquantize(1, 10, 0, 100000, 10);
}
