/* NAME void is the only parameter where it stands
 * TAG D_DECL_PROTO_VOID
 */
int f(int, void);
BEGIN
{
	exit(0);
}
