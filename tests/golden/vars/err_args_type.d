/* NAME args[] is indexed with an integer constant
 * TAG D_ARGS_TYPE
 * SKIP the command says D_UNKNOWN instead
 */
BEGIN
{
	trace(args["one"]);
}
