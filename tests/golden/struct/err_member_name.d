/* NAME a member name is used once
 * TAG D_DECL_MNAME
 * SKIP the command accepts it
 */
struct pair {
	int a;
	char a;
};
BEGIN
{
	exit(0);
}
