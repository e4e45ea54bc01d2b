/* NAME a product takes numbers
 * TAG D_OP_ARITH
 */
BEGIN
{
	trace("a" * 2);
}
