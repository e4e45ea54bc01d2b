/* NAME the two values of ?: have one type
 * TAG D_OP_INCOMPAT
 */
BEGIN
{
	trace(pid ? "yes" : 0);
}
