/* NAME a shift takes integers
 * TAG D_OP_INT
 */
BEGIN
{
	trace("a" << 1);
}
