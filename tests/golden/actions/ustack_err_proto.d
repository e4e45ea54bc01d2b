/* NAME ustack() takes at most two arguments
 * TAG D_USTACK_PROTO
 * SKIP ustack() is not supported yet
 */
BEGIN
{
	ustack(1, 2, 3);
}
