/* NAME a constant cannot be assigned to
 * TAG D_OP_LVAL
 */
BEGIN
{
	1 = 2;
}
