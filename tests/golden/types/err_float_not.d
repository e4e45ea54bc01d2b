/* NAME floating-point values take no part in a condition
 * TAG D_OP_SCALAR
 */
double d;
BEGIN
{
	x = !d;
}
