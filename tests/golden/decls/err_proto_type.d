/* NAME a key is not of a type without a value
 * TAG D_DECL_PROTO_TYPE
 * SKIP the command accepts it
 */
int a[void];
BEGIN
{
	exit(0);
}
