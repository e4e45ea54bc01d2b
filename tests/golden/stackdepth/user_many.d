/* NAME ustack() takes two arguments
 * TAG D_USTACK_PROTO
 */
BEGIN
{
	ustack(1, 2, 3);
}
