/* NAME printf() takes a format
 * TAG D_PROTO_LEN
 */
BEGIN
{
	printf();
}
