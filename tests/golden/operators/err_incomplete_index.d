/* NAME there are no elements of an incomplete structure
 * TAG D_OP_INCOMPLETE
 */
struct s;
BEGIN
{
	trace(((struct s *)0)[1]);
}
