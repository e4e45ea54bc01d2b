/* NAME strings are not added
 * TAG D_OP_ARITH
 */
BEGIN
{
	x = "a" + "b";
}
