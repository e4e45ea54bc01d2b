/* NAME a pointer to void has no elements
 * TAG D_OP_INCOMPAT
 */
BEGIN
{
	this->p = (void *)8;
	trace(this->p[1]);
}
