/* NAME ustack() takes a size of strings
 * TAG D_USTACK_STRSIZE
 */
BEGIN
{
	ustack(10, "ten");
}
