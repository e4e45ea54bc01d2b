/* NAME a pointer cannot be multiplied
 * TAG D_OP_ARITH
 * SKIP the command says D_UNKNOWN instead
 */
int *place;
BEGIN
{
	trace(place * 2);
}
