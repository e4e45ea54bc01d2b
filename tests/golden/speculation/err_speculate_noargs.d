/* NAME speculate() takes the speculation's number
 * TAG D_PROTO_LEN
 * SKIP speculate() is not supported yet
 */
BEGIN
{
	speculate();
}
