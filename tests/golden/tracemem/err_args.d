/* NAME tracemem() takes an address and a size
 * TAG D_PROTO_LEN
 */
BEGIN
{
	tracemem("hello");
}
