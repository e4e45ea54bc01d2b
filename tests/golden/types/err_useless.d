/* NAME a declaration declares something
 * TAG D_DECL_USELESS
 */
int;
BEGIN
{
	exit(0);
}
