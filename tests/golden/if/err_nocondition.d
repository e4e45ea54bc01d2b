/* NAME if needs its condition
 * TAG D_SYNTAX
 */
BEGIN
{
	if {
		trace(1);
	}
}
