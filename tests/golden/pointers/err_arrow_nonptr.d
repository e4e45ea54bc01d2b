/* NAME -> needs a pointer
 * TAG D_OP_PTR
 */
int number;
BEGIN
{
	trace(number->member);
}
