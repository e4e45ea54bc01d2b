/* NAME strlen() takes a string
 * TAG D_PROTO_ARG
 * SKIP the command says D_UNKNOWN instead
 */
BEGIN
{
	trace(strlen(12));
}
