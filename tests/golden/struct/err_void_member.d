/* NAME a member is not void
 * TAG D_DECL_VOIDOBJ
 * SKIP the command says D_DECL_INCOMPLETE instead
 */
struct pair {
	void a;
};
BEGIN
{
	exit(0);
}
