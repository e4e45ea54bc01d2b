/* NAME discard() takes one argument
 * TAG D_PROTO_LEN
 * SKIP discard() is not supported yet
 */
BEGIN
{
	discard(1, 2);
}
