/* NAME void has no size
 * TAG D_SIZEOF_TYPE
 */
BEGIN
{
	trace(sizeof (void));
}
