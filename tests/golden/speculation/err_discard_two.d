/* NAME discard() takes one argument
 * TAG D_PROTO_LEN
 */
BEGIN
{
	discard(1, 2);
}
