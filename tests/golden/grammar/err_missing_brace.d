/* NAME a clause ends in a brace
 * TAG D_SYNTAX
 */
BEGIN
{
	exit(0);
