/* NAME a string is not assigned to an integer
 * TAG D_OP_INCOMPAT
 * SKIP the command says D_UNKNOWN instead
 */
BEGIN
{
	x = 1;
	x = "text";
}
