/* NAME a string is no address for tracemem()
 * TAG D_TRACEMEM_ADDR
 */
BEGIN
{
	tracemem("hello", 5);
}
