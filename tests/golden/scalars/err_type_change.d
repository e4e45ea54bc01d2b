/* NAME a string is not assigned to an integer
 * TAG D_OP_INCOMPAT
 */
BEGIN
{
	x = 1;
	x = "text";
}
