/* NAME stack() takes a size
 * TAG D_STACK_SIZE
 * SKIP stack() is not supported yet
 */
BEGIN
{
	stack("ten");
}
