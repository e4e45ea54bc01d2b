/* NAME quantize() takes a value
 * TAG D_PROTO_LEN
 * SKIP the command says D_QUANT_PROTO instead
 */
BEGIN
{
	@total = quantize();
}
