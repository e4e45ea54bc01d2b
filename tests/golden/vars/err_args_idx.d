/* NAME args[] is indexed with an integer constant
 * TAG D_ARGS_TYPE
 */
tick-1
{
	trace(args[timestamp]);
}
