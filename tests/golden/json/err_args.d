/* NAME json() takes a document and a path
 * TAG D_PROTO_LEN
 */
BEGIN
{
	trace(json("{}"));
}
