/* NAME a declaration declares something
 * TAG D_DECL_USELESS
 * SKIP the command accepts it
 */
int;
BEGIN
{
	exit(0);
}
