/* NAME ustack() takes a constant
 * TAG D_USTACK_FRAMES
 */
BEGIN
{
	ustack(pid);
}
