/* NAME comments do not nest
 * TAG D_SYNTAX
 */
BEGIN
{
	/* one /* two */
	exit(0);
}
