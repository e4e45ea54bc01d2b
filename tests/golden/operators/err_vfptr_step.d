/* NAME a pointer to void cannot be stepped
 * TAG D_OP_VFPTR
 */
BEGIN
{
	this->p = (void *)8;
	this->p++;
}
