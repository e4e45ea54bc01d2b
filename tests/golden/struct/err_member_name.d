/* NAME a member has a name
 * TAG D_DECL_MNAME
 */
struct pair {
	int a;
	char;
};
BEGIN
{
	exit(0);
}
