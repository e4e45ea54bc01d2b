/* NAME a shift takes integers
 * TAG D_OP_INT
 * SKIP the command says D_UNKNOWN instead
 */
BEGIN
{
	trace("a" << 1);
}
