/* NAME the steps of one llquantize() do not change
 * TAG D_LLQUANT_NSTEPMATCH
 */
BEGIN
{
	@total = llquantize(1, 10, 0, 3, 20);
	@total = llquantize(1, 10, 0, 3, 10);
}
