/* NAME floating-point constants are not permitted
 * TAG D_SYNTAX
 */
BEGIN
{
	trace(1.5);
}
