/* NAME alloca() takes a size
 * TAG D_PROTO_LEN
 * SKIP the command says D_UNKNOWN instead
 */
BEGIN
{
	alloca();
}
