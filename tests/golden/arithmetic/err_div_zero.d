/* NAME division by the constant zero is an error
 * TAG D_DIV_ZERO
 */
BEGIN
{
	trace(10 / 0);
}
