/* NAME strlen() takes one argument
 * TAG D_PROTO_LEN
 * SKIP the command says D_UNKNOWN instead
 */
BEGIN
{
	trace(strlen("a", "b"));
}
