/* NAME a predicate does not define what its body assigns from itself
 * TAG D_VAR_UNDEF
 */
BEGIN
/x == 0/
{
	x = x + 1;
	exit(0);
}
