/* NAME a declaration has one type
 * TAG D_DECL_COMBO
 */
int char x;
BEGIN
{
	exit(0);
}
