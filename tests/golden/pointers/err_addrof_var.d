/* NAME a D variable has no address
 * TAG D_ADDROF_VAR
 */
int number;
BEGIN
{
	trace(&number);
}
