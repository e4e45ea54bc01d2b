/* NAME speculate() takes the speculation's number
 * TAG D_PROTO_LEN
 */
BEGIN
{
	speculate();
}
