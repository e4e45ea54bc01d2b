/* NAME stop() takes no argument
 * TAG D_PROTO_LEN
 * OPTIONS -w
 * SKIP stop() is not supported yet
 */
BEGIN
{
	stop(1);
}
