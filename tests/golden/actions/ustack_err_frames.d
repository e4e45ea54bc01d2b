/* NAME ustack() takes a number of frames
 * TAG D_USTACK_FRAMES
 */
BEGIN
{
	ustack("ten");
}
