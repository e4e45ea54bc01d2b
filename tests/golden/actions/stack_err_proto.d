/* NAME stack() takes at most one argument
 * TAG D_STACK_PROTO
 * SKIP stack() is not supported yet
 */
BEGIN
{
	stack(1, 2);
}
