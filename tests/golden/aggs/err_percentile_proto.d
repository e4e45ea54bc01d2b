/* NAME percentile() takes at least one percentile
 * TAG D_PROTO_LEN
 */
BEGIN
{
	@a = quantize(1);
	percentile(@a);
}
