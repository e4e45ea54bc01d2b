/* NAME an empty predicate is an error
 * TAG D_SYNTAX
 */
BEGIN
/ /
{
	exit(0);
}
