/* NAME strlen() takes a string
 * TAG D_PROTO_ARG
 */
BEGIN
{
	trace(strlen(12));
}
