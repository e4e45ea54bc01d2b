/* NAME stack() takes a size
 * TAG D_STACK_SIZE
 */
BEGIN
{
	stack("ten");
}
