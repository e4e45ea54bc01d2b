/* NAME break stands in a loop
 * TAG D_SYNTAX
 */
BEGIN
{
	break;
}
