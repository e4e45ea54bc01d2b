/* NAME a variable without a type cannot be read and written
 * TAG D_OP_DYN
 * SKIP the command says D_OP_ARITH instead
 */
BEGIN
{
	nowhere += "a";
}
