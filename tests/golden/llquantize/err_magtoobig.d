/* NAME the high magnitude fits 64 bits
 * TAG D_LLQUANT_MAGTOOBIG
 */
BEGIN
{
	@total = llquantize(1, 10, 0, 30, 10);
}
