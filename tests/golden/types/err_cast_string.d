/* NAME a string cannot be cast from an integer
 * TAG D_CAST_INVAL
 * SKIP the command says D_UNKNOWN instead
 */
BEGIN
{
	trace((string)7);
}
