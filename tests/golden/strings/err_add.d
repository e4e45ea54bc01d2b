/* NAME strings are not added
 * TAG D_OP_INCOMPAT
 */
BEGIN
{
	x = "a" + "b";
}
