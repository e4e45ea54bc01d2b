/* NAME freopen() takes a format
 * TAG D_PROTO_LEN
 * OPTIONS -w
 * SKIP freopen() is not supported yet
 */
BEGIN
{
	freopen();
}
