/* NAME ... stands at the end of a prototype
 * TAG D_DECL_PROTO_VARARGS
 * SKIP the command says D_SYNTAX instead
 */
int a[int, ...];
BEGIN
{
	exit(0);
}
