/* NAME a member has a name
 * TAG D_DECL_MNAME
 * SKIP the command accepts it
 */
struct pair {
	int a;
	char;
};
BEGIN
{
	exit(0);
}
