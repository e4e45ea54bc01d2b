/* NAME . needs a struct or union
 * TAG D_OP_SOU
 */
int number;
BEGIN
{
	trace(number.member);
}
