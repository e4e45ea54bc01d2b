/* NAME an argument that was not given is an error
 * TAG D_MACRO_UNDEF
 */
BEGIN
{
	trace($1);
}
