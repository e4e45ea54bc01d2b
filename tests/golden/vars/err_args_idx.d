/* NAME BEGIN has no typed arguments
 * TAG D_ARGS_IDX
 */
BEGIN
{
	trace(args[0]);
}
