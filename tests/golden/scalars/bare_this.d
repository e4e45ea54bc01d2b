/* NAME this alone is no condition
 * TAG D_IDENT_BADREF
 */
BEGIN
/this/
{
	exit(0);
}
