/* NAME a struct tag that was never declared is no type
 * TAG D_TYPE_ERR
 * SKIP the command says D_SIZEOF_TYPE instead
 */
BEGIN
{
	trace(sizeof (struct nowhere));
}
