/* NAME a character constant is not empty
 * TAG D_CHR_NULL
 */
BEGIN
{
	trace('');
}
