/* NAME a reserved word names no variable
 * TAG D_SYNTAX
 */
BEGIN
{
	register = 1;
}
