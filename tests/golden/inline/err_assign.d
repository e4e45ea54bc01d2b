/* NAME an inline cannot be assigned to
 * TAG D_OP_LVAL
 */
inline int A = 2;
BEGIN
{
	A = 3;
}
