/* NAME substr() takes two or three arguments
 * TAG D_PROTO_LEN
 */
BEGIN
{
	trace(substr("abc"));
}
