/* NAME speculation() takes no argument
 * TAG D_PROTO_LEN
 * SKIP the command says D_UNKNOWN instead
 */
BEGIN
{
	self->s = speculation(1);
}
