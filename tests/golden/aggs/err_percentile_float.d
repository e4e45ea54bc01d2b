/* NAME floating-point constants are permitted in percentile() alone
 * TAG D_SYNTAX
 */
BEGIN
{
	@ = quantize(1);
	percentile(@, 1.5 + 1);
}
