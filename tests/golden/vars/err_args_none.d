/* NAME BEGIN has no typed arguments
 * TAG D_ARGS_NONE
 */
BEGIN
{
	trace(args[0]);
}
