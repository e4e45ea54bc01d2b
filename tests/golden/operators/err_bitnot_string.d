/* NAME ~ takes an integer
 * TAG D_OP_INT
 * SKIP the command says D_UNKNOWN instead
 */
BEGIN
{
	trace(~"a");
}
