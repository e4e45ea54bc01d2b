/* NAME the second argument of ustack() is a size
 * TAG D_USTACK_STRSIZE
 */
BEGIN
{
	ustack(1, -1);
}
