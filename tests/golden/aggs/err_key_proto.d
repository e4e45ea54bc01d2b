/* NAME the keys of an aggregation do not change their number
 * TAG D_PROTO_LEN
 */
BEGIN
{
	@total[1] = count();
	@total[1, 2] = count();
}
