/* NAME exit() takes the status
 * TAG D_PROTO_LEN
 */
BEGIN
{
	exit();
}
