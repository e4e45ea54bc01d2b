/* NAME a function is no value
 * TAG D_IDENT_BADREF
 */
BEGIN
{
	trace(strlen);
}
