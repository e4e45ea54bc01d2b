/* NAME a pointer to a function cannot be followed
 * TAG D_DEREF_FUNC
 */
typedef int handler_t(int);
handler_t *place;
BEGIN
{
	trace(*place);
}
