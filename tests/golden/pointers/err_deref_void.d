/* NAME a pointer to void cannot be followed
 * TAG D_DEREF_VOID
 */
void *place;
BEGIN
{
	trace(*place);
}
