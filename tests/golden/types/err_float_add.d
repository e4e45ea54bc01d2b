/* NAME floating-point values take no part in an addition
 * TAG D_OP_INCOMPAT
 */
double d;
BEGIN
{
	x = d + 1;
}
