/* NAME a thread variable that nobody assigned is an error
 * TAG D_VAR_UNDEF
 */
BEGIN
{
	trace(self->nowhere);
}
