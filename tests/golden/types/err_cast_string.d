/* NAME a string cannot be cast from an integer
 * TAG D_CAST_INVAL
 */
BEGIN
{
	trace((string)7);
}
