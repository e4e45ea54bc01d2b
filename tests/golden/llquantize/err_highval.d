/* NAME the high magnitude fits 16 bits
 * TAG D_LLQUANT_HIGHVAL
 * SKIP the command says D_UNKNOWN instead
 */
BEGIN
{
	@total = llquantize(1, 10, 0, 100000, 10);
}
