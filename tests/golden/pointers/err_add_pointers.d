/* NAME two pointers cannot be added
 * TAG D_OP_INCOMPAT
 * SKIP the command says D_OP_ARITH instead
 */
int *first, *second;
BEGIN
{
	trace(first + second);
}
