/* NAME a string is not compared with an integer
 * TAG D_OP_INCOMPAT
 */
BEGIN
{
	trace("a" == 1);
}
