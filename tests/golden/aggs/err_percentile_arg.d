/* NAME percentile() takes numbers up to 100
 * TAG D_PERCENTILE_ARG
 */
BEGIN
{
	@a = quantize(1);
	percentile(@a, 50, 100.5);
}
