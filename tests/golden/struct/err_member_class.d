/* NAME a member has no storage class
 * TAG D_SYNTAX
 * SKIP the command says D_DECL_BADCLASS instead
 */
struct pair {
	static int a;
};
BEGIN
{
	exit(0);
}
