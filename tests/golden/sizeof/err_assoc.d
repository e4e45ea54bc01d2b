/* NAME an associative array has no size
 * TAG D_IDENT_BADREF
 * SKIP the command says D_ARR_BADREF instead
 */
BEGIN
{
	a[1] = 2;
	trace(sizeof (a));
}
