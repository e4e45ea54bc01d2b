/* NAME a pointer to void has no elements
 * TAG D_OP_VFPTR
 */
BEGIN
{
	this->p = (void *)8;
	trace(this->p[1]);
}
