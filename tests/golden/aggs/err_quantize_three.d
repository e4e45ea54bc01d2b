/* NAME quantize() takes a value and an increment
 * TAG D_PROTO_LEN
 */
BEGIN
{
	@total = quantize(1, 2, 3);
}
