/* NAME self alone is no value
 * TAG D_IDENT_BADREF
 */
BEGIN
{
	trace(self);
}
