/* NAME a decade has at least as many steps as the factor
 * TAG D_LLQUANT_FACTORNSTEPS
 */
BEGIN
{
	@total = llquantize(1, 10, 0, 3, 5);
}
