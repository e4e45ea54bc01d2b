/* NAME ~ takes an integer
 * TAG D_OP_INT
 */
BEGIN
{
	trace(~"a");
}
