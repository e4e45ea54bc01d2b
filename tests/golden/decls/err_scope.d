/* NAME a name that is scoped to a module is not declared
 * TAG D_DECL_SCOPE
 */
int vmlinux`x;
BEGIN
{
	exit(0);
}
