/* NAME void has no size
 * TAG D_SIZEOF_TYPE
 * SKIP the command says D_UNKNOWN instead
 */
BEGIN
{
	trace(sizeof (void));
}
