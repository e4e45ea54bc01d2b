/* NAME the low magnitude is an integer constant
 * TAG D_LLQUANT_LOWTYPE
 */
BEGIN
{
	@total = llquantize(1, 10, timestamp, 3, 10);
}
