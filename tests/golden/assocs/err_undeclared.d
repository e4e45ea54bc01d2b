/* NAME reading an array that nobody assigned is an error
 * TAG D_VAR_UNDEF
 */
BEGIN
{
	trace(a[1]);
}
