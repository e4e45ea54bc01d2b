/* NAME a key is not of a type without a value
 * TAG D_DECL_PROTO_TYPE
 */
int a[void];
BEGIN
{
	exit(0);
}
