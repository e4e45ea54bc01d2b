/* NAME args[] is indexed with an integer constant
 * TAG D_PROTO_ARG
 */
BEGIN
{
	trace(args["one"]);
}
