/* NAME NULL cannot be assigned to
 * TAG D_OP_LVAL
 */
BEGIN
{
	NULL = 1;
}
