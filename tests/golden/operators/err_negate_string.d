/* NAME a string has no negative
 * TAG D_OP_ARITH
 * SKIP the command says D_OP_INT instead
 */
BEGIN
{
	trace(-"a");
}
