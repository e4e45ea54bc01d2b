/* NAME quantize() takes a value and an increment
 * TAG D_QUANT_PROTO
 */
BEGIN
{
	@total = quantize(1, 2, 3);
}
