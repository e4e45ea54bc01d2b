/* NAME quantize() takes a value
 * TAG D_PROTO_LEN
 */
BEGIN
{
	@total = quantize();
}
