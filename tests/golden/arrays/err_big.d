/* NAME an array is not too big
 * TAG D_DECL_ARRBIG
 * SKIP the command says D_UNKNOWN instead
 */
int numbers[0x100000000];
BEGIN
{
	exit(0);
}
