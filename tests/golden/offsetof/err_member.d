/* NAME offsetof needs a member
 * TAG D_UNKNOWN
 */
struct s {
	int a;
};
BEGIN
{
	trace(offsetof(struct s, b));
}
