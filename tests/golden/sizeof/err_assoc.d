/* NAME an associative array has no size
 * TAG D_IDENT_BADREF
 */
BEGIN
{
	a[1] = 2;
	trace(sizeof (a));
}
