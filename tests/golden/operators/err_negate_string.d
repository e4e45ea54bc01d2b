/* NAME a string has no negative
 * TAG D_OP_ARITH
 */
BEGIN
{
	trace(-"a");
}
