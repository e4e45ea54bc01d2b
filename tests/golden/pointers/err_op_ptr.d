/* NAME -> needs a pointer to a struct or union
 * TAG D_OP_SOU
 * SKIP the command says D_UNKNOWN instead
 */
int *place;
BEGIN
{
	trace(place->member);
}
