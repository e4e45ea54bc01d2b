/* NAME a structure that was never declared has no size
 * TAG D_SIZEOF_TYPE
 */
BEGIN
{
	trace(sizeof (struct nowhere));
}
