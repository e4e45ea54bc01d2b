/* NAME offsetof needs a member
 * TAG D_TYPE_MEMBER
 * SKIP the command says D_UNKNOWN instead
 */
struct s {
	int a;
};
BEGIN
{
	trace(offsetof(struct s, b));
}
