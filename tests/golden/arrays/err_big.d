/* NAME an array is not too big
 * TAG D_DECL_ARRBIG
 */
int numbers[0x100000000];
BEGIN
{
	exit(0);
}
