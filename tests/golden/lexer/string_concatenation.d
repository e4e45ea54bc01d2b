/* NAME two strings side by side are a syntax error in D
 * TAG D_SYNTAX
 */
BEGIN
{
	trace("a" "b");
}
