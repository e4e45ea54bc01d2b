/* NAME the keys of an aggregation do not change their number
 * TAG D_PROTO_LEN
 * SKIP the command says D_UNKNOWN instead
 */
BEGIN
{
	@total[1] = count();
	@total[1, 2] = count();
}
