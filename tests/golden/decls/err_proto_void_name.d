/* NAME void as a parameter has no name
 * TAG D_DECL_PROTO_NAME
 */
int f(void x);
BEGIN
{
	exit(0);
}
