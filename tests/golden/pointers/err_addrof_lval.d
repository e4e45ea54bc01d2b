/* NAME a value that is no lvalue has no address
 * TAG D_ADDROF_LVAL
 */
int number;
BEGIN
{
	trace(&(number + 1));
}
