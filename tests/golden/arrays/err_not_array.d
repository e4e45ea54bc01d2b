/* NAME a number has no elements
 * TAG D_DEREF_NONPTR
 */
BEGIN
{
	x = 1;
	trace(x[1]);
}
