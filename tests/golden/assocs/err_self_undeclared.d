/* NAME reading a thread-local array that nobody assigned is an error
 * TAG D_VAR_UNDEF
 */
BEGIN
{
	trace(self->a[1]);
}
