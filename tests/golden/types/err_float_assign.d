/* NAME floating-point variables take no integers
 * TAG D_OP_INCOMPAT
 */
double d;
BEGIN
{
	d = 1;
}
