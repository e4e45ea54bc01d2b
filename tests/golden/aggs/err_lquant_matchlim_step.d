/* NAME steps that end before the limit change the limit
 * TAG D_LQUANT_MATCHLIM
 */
BEGIN
{
	@ = lquantize(1, 0, 5, 1);
	@ = lquantize(1, 0, 5, 2);
}
