/* NAME count() takes no argument
 * TAG D_PROTO_LEN
 */
BEGIN
{
	@total = count(1);
}
