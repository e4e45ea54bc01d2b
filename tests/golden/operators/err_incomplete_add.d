/* NAME nothing can be added to a pointer to an incomplete structure
 * TAG D_OP_INCOMPLETE
 */
struct s;
BEGIN
{
	this->p = (struct s *)0;
	trace(this->p + 1);
}
