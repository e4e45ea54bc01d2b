/* NAME an action has no value to be assigned
 * TAG D_OP_INCOMPAT
 */
BEGIN
{
	x = printf("a");
}
