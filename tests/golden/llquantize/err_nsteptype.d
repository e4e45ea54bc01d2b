/* NAME the number of steps is an integer constant
 * TAG D_LLQUANT_NSTEPTYPE
 */
BEGIN
{
	@total = llquantize(1, 10, 0, 3, timestamp);
}
