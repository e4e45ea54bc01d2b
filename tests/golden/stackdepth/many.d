/* NAME stack() takes one argument
 * TAG D_STACK_PROTO
 */
BEGIN
{
	stack(1, 2);
}
