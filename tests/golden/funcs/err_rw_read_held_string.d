/* NAME rw_read_held() takes an address, no string
 * TAG D_PROTO_ARG
 */
BEGIN
{
	rw_read_held("x");
}
