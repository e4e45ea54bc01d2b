/* NAME void has no const variables
 * TAG D_DECL_VOIDATTR
 * SKIP the command says D_DECL_COMBO instead
 */
unsigned void x;
BEGIN
{
	exit(0);
}
