/* NAME an associative array is no parameter
 * TAG D_DECL_PROTO_TYPE
 */
int f(int x[int]);
BEGIN
{
	exit(0);
}
