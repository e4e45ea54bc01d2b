/* NAME only a name can be called
 * TAG D_FUNC_IDENT
 */
BEGIN
{
	(1 + 2)(3);
}
