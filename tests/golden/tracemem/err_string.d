/* NAME a string is no address for tracemem()
 * TAG D_TRACEMEM_ADDR
 * SKIP the command says D_UNKNOWN instead
 */
BEGIN
{
	tracemem("hello", 5);
}
