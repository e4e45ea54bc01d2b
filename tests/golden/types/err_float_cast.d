/* NAME floating-point values take no part in a conversion
 * TAG D_CAST_INVAL
 */
double d;
BEGIN
{
	x = (int)d;
}
