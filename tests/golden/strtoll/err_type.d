/* NAME strtoll() takes a string
 * TAG D_PROTO_ARG
 */
BEGIN
{
	trace(strtoll(12));
}
