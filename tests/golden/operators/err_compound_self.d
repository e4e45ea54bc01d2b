/* NAME nor does it declare a thread-local variable
 * TAG D_VAR_UNDEF
 */
BEGIN
{
	self->x += 1;
}
