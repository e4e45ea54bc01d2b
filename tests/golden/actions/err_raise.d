/* NAME raise() takes a signal
 * TAG D_PROTO_LEN
 * OPTIONS -w
 * SKIP raise() is not supported yet
 */
BEGIN
{
	raise();
}
