/* NAME a D variable has no address
 * TAG D_ADDROF_VAR
 * SKIP the command says D_UNKNOWN instead
 */
int number;
BEGIN
{
	trace(&number);
}
