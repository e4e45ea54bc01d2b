/* NAME an array has at least one element
 * TAG D_DECL_ARRSUB
 * SKIP the command says D_UNKNOWN instead
 */
int numbers[0];
BEGIN
{
	exit(0);
}
