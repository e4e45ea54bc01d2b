/* NAME speculation() takes no argument
 * TAG D_PROTO_LEN
 */
BEGIN
{
	self->s = speculation(1);
}
