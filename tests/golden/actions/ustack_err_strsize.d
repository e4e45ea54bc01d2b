/* NAME ustack() takes a size of strings
 * TAG D_USTACK_STRSIZE
 * SKIP ustack() is not supported yet
 */
BEGIN
{
	ustack(10, "ten");
}
