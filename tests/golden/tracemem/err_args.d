/* NAME tracemem() takes an address and a size
 * TAG D_TRACEMEM_ARGS
 */
BEGIN
{
	tracemem("hello");
}
