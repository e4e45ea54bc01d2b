/* NAME a struct tag that was never declared is no type
 * TAG D_TYPE_ERR
 */
BEGIN
{
	trace(sizeof (struct nowhere));
}
