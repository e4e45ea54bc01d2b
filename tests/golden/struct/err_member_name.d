/* NAME a member has a name
 * TAG D_DECL_MNAME
 * SKIP the command says D_DECL_USELESS instead
 */
struct pair {
	int a;
	char;
};
BEGIN
{
	exit(0);
}
