/* NAME a string ends on its line
 * TAG D_STR_NL
 */
BEGIN
{
	trace("open
end");
}
