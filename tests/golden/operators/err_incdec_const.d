/* NAME ++ needs a variable
 * TAG D_OP_LVAL
 */
BEGIN
{
	5++;
}
