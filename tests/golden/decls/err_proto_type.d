/* NAME a key is not of a type without a value
 * TAG D_DECL_PROTO_TYPE
 * SKIP the command says D_DECL_PROTO_VOID instead
 */
int a[void];
BEGIN
{
	exit(0);
}
