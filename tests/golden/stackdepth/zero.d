/* NAME stack() takes a positive number
 * TAG D_STACK_SIZE
 */
BEGIN
{
	stack(-1);
}
