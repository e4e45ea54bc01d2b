/* NAME the two values of ?: have one type, or one is NULL
 * TAG D_OP_INCOMPAT
 */
BEGIN
{
	trace(pid ? "yes" : 1);
}
