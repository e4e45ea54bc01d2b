/* NAME freopen() takes a format
 * TAG D_PROTO_LEN
 * OPTIONS -w
 */
BEGIN
{
	freopen();
}
