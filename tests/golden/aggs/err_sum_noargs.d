/* NAME sum() takes an argument
 * TAG D_PROTO_LEN
 */
BEGIN
{
	@total = sum();
}
