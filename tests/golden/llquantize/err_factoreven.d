/* NAME the steps of a decade divide it evenly
 * TAG D_LLQUANT_FACTOREVEN
 */
BEGIN
{
	@total = llquantize(1, 10, 0, 3, 15);
}
