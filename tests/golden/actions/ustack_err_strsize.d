/* NAME ustack() takes a size of strings
 * TAG D_USTACK_STRSIZE
 * SKIP the command says D_UNKNOWN instead
 */
BEGIN
{
	ustack(10, "ten");
}
