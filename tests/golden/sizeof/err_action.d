/* NAME an action has no size
 * TAG D_SIZEOF_TYPE
 */
BEGIN
{
	trace(sizeof (trace(1)));
}
