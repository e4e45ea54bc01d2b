/* NAME the path of json() is a string
 * TAG D_PROTO_ARG
 */
BEGIN
{
	trace(json("{}", 1));
}
