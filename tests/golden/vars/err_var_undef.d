/* NAME a thread variable that nobody assigned is an error
 * TAG D_VAR_UNDEF
 * SKIP the command says D_UNKNOWN instead
 */
BEGIN
{
	trace(self->nowhere);
}
