/* NAME an element of an associative array has no address
 * TAG D_ADDROF_VAR
 */
BEGIN
{
	place[1] = 2;
	trace(&place[1]);
}
