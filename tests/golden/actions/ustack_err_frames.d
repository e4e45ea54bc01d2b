/* NAME ustack() takes a number of frames
 * TAG D_USTACK_FRAMES
 * SKIP ustack() is not supported yet
 */
BEGIN
{
	ustack("ten");
}
