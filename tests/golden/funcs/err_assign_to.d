/* NAME a function's name is no variable
 * TAG D_IDENT_BADREF
 */
BEGIN
{
	strlen = 1;
}
