/* NAME a pointer to void has no element size to add by
 * TAG D_OP_INCOMPAT
 */
void *place;
BEGIN
{
	trace(place + 1);
}
