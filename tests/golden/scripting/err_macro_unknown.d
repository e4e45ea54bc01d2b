/* NAME a macro variable that does not exist is an error
 * TAG D_MACRO_UNDEF
 */
BEGIN
{
	trace($nothing);
}
