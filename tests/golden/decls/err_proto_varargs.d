/* NAME ... stands at the end of a prototype
 * TAG D_DECL_PROTO_VARARGS
 */
int a[int, ...];
BEGIN
{
	exit(0);
}
