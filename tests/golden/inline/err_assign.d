/* NAME an inline cannot be assigned to
 * TAG D_OP_WRITE
 */
inline int A = 2;
BEGIN
{
	A = 3;
}
