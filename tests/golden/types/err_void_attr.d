/* NAME void has no const variables
 * TAG D_DECL_VOIDATTR
 */
unsigned void x;
BEGIN
{
	exit(0);
}
