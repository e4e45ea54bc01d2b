/* NAME a variable that nobody assigned is an error
 * TAG D_IDENT_UNDEF
 */
BEGIN
{
	trace(nowhere);
}
