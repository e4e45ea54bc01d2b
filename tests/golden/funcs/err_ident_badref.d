/* NAME a function is no value
 * TAG D_IDENT_BADREF
 * SKIP the command says D_IDENT_UNDEF instead
 */
BEGIN
{
	trace(strlen);
}
