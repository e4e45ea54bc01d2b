/* NAME lquantize() needs base and limit
 * TAG D_PROTO_LEN
 */
BEGIN
{
	@total = lquantize(1, 2);
}
