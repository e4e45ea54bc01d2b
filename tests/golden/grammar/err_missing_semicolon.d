/* NAME statements are separated by semicolons
 * TAG D_SYNTAX
 */
BEGIN
{
	trace(1)
	trace(2);
}
