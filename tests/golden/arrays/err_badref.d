/* NAME a scalar array is no associative array
 * TAG D_ARR_BADREF
 */
int a[3];
BEGIN
{
	trace(a[1, 2]);
}
