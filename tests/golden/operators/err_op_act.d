/* NAME an action has no value
 * TAG D_OP_INCOMPAT
 * SKIP the command says D_CG_EXPR instead
 */
BEGIN
{
	number = 1 ? trace(1) : 2;
}
