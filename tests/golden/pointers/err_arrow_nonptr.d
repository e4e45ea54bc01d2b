/* NAME -> needs a pointer
 * TAG D_OP_PTR
 * SKIP the command says D_UNKNOWN instead
 */
int number;
BEGIN
{
	trace(number->member);
}
