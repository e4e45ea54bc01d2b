/* NAME the high magnitude is an integer constant
 * TAG D_LLQUANT_HIGHTYPE
 */
BEGIN
{
	@total = llquantize(1, 10, 0, timestamp, 10);
}
