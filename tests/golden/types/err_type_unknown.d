/* NAME a cast names a type that exists
 * TAG D_SYNTAX
 */
BEGIN
{
	trace((nowhere_t)7);
}
