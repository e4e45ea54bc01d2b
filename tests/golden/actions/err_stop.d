/* NAME stop() takes no argument
 * TAG D_PROTO_LEN
 * OPTIONS -w
 */
BEGIN
{
	stop(1);
}
