/* NAME ustack() takes a number of frames
 * TAG D_USTACK_FRAMES
 * SKIP the command says D_UNKNOWN instead
 */
BEGIN
{
	ustack("ten");
}
