/* NAME a name does not begin with a digit
 * TAG D_SYNTAX
 */
BEGIN
{
	1name = 2;
}
