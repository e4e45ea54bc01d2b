/* NAME an action has no value
 * TAG D_OP_INCOMPAT
 */
BEGIN
{
	number = 1 ? trace(1) : 2;
}
