/* NAME tracemem() takes an address and a size
 * TAG D_TRACEMEM_ARGS
 * SKIP the command says D_PROTO_LEN instead
 */
BEGIN
{
	tracemem("hello");
}
