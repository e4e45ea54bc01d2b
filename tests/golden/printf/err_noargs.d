/* NAME printf() takes a format
 * TAG D_PROTO_LEN
 * SKIP the command says D_PRINTF_DYN_PROTO instead
 */
BEGIN
{
	printf();
}
