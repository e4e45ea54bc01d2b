/* NAME a character constant ends on its line
 * TAG D_CHR_NL
 */
BEGIN
{
	trace('
');
}
