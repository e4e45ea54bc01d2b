/* NAME the size of an array is no string
 * TAG D_DECL_ARRSUB
 */
int numbers["two"];
BEGIN
{
	exit(0);
}
