/* NAME a name that is scoped to a module is not declared
 * TAG D_DECL_SCOPE
 * SKIP the command says D_SYNTAX instead
 */
int vmlinux`x;
BEGIN
{
	exit(0);
}
