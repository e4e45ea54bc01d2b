/* NAME a variable does not change its type
 * TAG D_DECL_IDRED
 */
int x;
char x;
BEGIN
{
	exit(0);
}
