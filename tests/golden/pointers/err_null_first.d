/* NAME what was NULL first is an int and takes no pointer
 * TAG D_OP_INCOMPAT
 */
BEGIN
{
	self->p = NULL;
	self->p = (int *)16;
	exit(0);
}
