/* NAME a function returns no array
 * TAG D_DECL_PROTO_FORM
 */
int f(int)[3];
BEGIN
{
	exit(0);
}
