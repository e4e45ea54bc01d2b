/* NAME a character that starts no token is an error
 * TAG D_SYNTAX
 */
BEGIN
{
	trace(1 \ 2);
}
