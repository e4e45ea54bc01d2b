/* NAME the size of an array is an integer constant
 * TAG D_DECL_ARRSUB
 */
int numbers[-1];
BEGIN
{
	exit(0);
}
