/* NAME an associative array has no size
 * TAG D_SIZEOF_TYPE
 */
BEGIN
{
	a[1] = 2;
	trace(sizeof (a));
}
