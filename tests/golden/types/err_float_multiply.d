/* NAME floating-point values take no part in a product
 * TAG D_OP_ARITH
 */
double d;
BEGIN
{
	x = d * d;
}
