/* NAME a member has a complete type
 * TAG D_DECL_INCOMPLETE
 */
struct pair {
	struct nowhere a;
};
BEGIN
{
	exit(0);
}
