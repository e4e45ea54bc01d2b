/* NAME the keys of an aggregation do not change their type
 * TAG D_PROTO_ARG
 */
BEGIN
{
	@total[1] = count();
	@total["one"] = count();
}
