/* NAME an action has no size
 * TAG D_SIZEOF_TYPE
 * SKIP the command says D_CG_EXPR instead
 */
BEGIN
{
	trace(sizeof (trace(1)));
}
