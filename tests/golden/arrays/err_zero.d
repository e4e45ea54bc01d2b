/* NAME an array has at least one element
 * TAG D_DECL_ARRSUB
 */
int numbers[0];
BEGIN
{
	exit(0);
}
