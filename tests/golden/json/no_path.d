/* NAME json() needs a path
 * TAG D_PROTO_LEN
 */
BEGIN
{
	trace(json("{}"));
}
