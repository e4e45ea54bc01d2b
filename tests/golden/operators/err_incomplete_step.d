/* NAME a pointer to an incomplete structure cannot be stepped
 * TAG D_OP_INCOMPLETE
 */
struct s;
BEGIN
{
	this->p = (struct s *)0;
	this->p++;
}
