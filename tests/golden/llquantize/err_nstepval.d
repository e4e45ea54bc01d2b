/* NAME the number of steps fits 16 bits
 * TAG D_LLQUANT_NSTEPVAL
 */
BEGIN
{
	@total = llquantize(1, 10, 0, 3, 100000);
}
