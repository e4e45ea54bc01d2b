/* NAME alloca() takes a size
 * TAG D_PROTO_LEN
 */
BEGIN
{
	alloca();
}
