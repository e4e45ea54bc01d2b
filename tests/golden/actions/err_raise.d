/* NAME raise() takes a signal
 * TAG D_PROTO_LEN
 * OPTIONS -w
 */
BEGIN
{
	raise();
}
