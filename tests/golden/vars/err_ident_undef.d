/* NAME a variable that nobody assigned is an error
 * TAG D_IDENT_UNDEF
 * SKIP the command says D_UNKNOWN instead
 */
BEGIN
{
	trace(nowhere);
}
