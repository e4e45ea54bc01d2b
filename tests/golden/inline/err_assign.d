/* NAME an inline cannot be assigned to
 * TAG D_OP_LVAL
 * SKIP the command says D_UNKNOWN instead
 */
inline int A = 2;
BEGIN
{
	A = 3;
}
