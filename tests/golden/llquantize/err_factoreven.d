/* NAME the steps of a decade divide it evenly
 * TAG D_LLQUANT_FACTOREVEN
 * SKIP the command says D_UNKNOWN instead
 */
BEGIN
{
	@total = llquantize(1, 10, 0, 3, 15);
}
