/* NAME a pointer cannot be multiplied
 * TAG D_OP_ARITH
 */
int *place;
BEGIN
{
	trace(place * 2);
}
