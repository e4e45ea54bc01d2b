/* NAME trace() takes one argument
 * TAG D_PROTO_LEN
 */
BEGIN
{
	trace();
}
