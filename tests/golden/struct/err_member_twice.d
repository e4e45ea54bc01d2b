/* NAME a member name is used once
 * TAG D_UNKNOWN
 * SKIP the command says D_DECL_MNAME instead
 */
struct pair {
	int a;
	char a;
};
BEGIN
{
	exit(0);
}
