/* NAME only a name can be called
 * TAG D_FUNC_IDENT
 * SKIP the command says D_SYNTAX instead
 */
BEGIN
{
	(1 + 2)(3);
}
