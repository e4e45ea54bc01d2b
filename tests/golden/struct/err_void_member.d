/* NAME a member is not void
 * TAG D_DECL_VOIDOBJ
 */
struct pair {
	void a;
};
BEGIN
{
	exit(0);
}
