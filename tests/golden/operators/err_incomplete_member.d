/* NAME an incomplete structure has no members
 * TAG D_OP_INCOMPLETE
 */
struct s;
BEGIN
{
	trace(((struct s *)0)->x);
}
