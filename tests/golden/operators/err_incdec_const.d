/* NAME ++ needs a variable
 * TAG D_OP_LVAL
 * SKIP the command says D_UNKNOWN instead
 */
BEGIN
{
	5++;
}
