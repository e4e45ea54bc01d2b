/* NAME stack() takes a constant
 * TAG D_STACK_SIZE
 */
BEGIN
{
	stack(pid);
}
