/* NAME printa() takes arguments
 * TAG D_PROTO_LEN
 */
BEGIN
{
	printa();
}
