/* NAME a declaration at the top is not register
 * TAG D_DECL_BADCLASS
 */
register int x;
BEGIN
{
	exit(0);
}
