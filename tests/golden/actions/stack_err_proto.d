/* NAME stack() takes at most one argument
 * TAG D_STACK_PROTO
 */
BEGIN
{
	stack(1, 2);
}
