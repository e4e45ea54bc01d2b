/* NAME a character constant has at most eight characters
 * TAG D_CHR_OFLOW
 */
BEGIN
{
	trace('abcdefghi');
}
