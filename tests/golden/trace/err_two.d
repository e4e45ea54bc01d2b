/* NAME trace() takes only one argument
 * TAG D_PROTO_LEN
 */
BEGIN
{
	trace(1, 2);
}
