/* NAME strlen() takes one argument
 * TAG D_PROTO_LEN
 */
BEGIN
{
	trace(strlen("a", "b"));
}
