/* NAME -> needs a pointer to a struct or union
 * TAG D_OP_SOU
 */
int *place;
BEGIN
{
	trace(place->member);
}
