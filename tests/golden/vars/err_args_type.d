/* NAME args[] is indexed with an integer constant
 * TAG D_ARGS_TYPE
 */
BEGIN
{
	trace(args["one"]);
}
