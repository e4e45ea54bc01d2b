/* NAME only integers have signed and unsigned
 * TAG D_DECL_SIGNINT
 * SKIP the command says D_DECL_COMBO instead
 */
unsigned float x;
BEGIN
{
	exit(0);
}
