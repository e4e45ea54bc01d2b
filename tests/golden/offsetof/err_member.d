/* NAME offsetof needs a member
 * TAG D_TYPE_MEMBER
 */
struct s {
	int a;
};
BEGIN
{
	trace(offsetof(struct s, b));
}
