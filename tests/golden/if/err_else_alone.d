/* NAME else needs its if
 * TAG D_SYNTAX
 */
BEGIN
{
	else {
		trace(1);
	}
}
