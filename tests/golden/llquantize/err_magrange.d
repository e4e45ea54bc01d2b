/* NAME the high magnitude is above the low one
 * TAG D_LLQUANT_MAGRANGE
 */
BEGIN
{
	@total = llquantize(1, 10, 5, 3, 10);
}
