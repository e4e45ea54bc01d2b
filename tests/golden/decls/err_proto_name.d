/* NAME the parameters of an inline have names
 * TAG D_DECL_PROTO_NAME
 */
inline int first[int] = 1;
BEGIN
{
	exit(0);
}
