/* NAME the range of lquantize() does not hold too many steps
 * TAG D_LQUANT_STEPSMALL
 */
BEGIN
{
	@total = lquantize(1, 0, 1000000, 1);
}
