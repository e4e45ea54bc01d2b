/* NAME the size of an array is no string
 * TAG D_DECL_ARRSUB
 * SKIP the command says D_UNKNOWN instead
 */
int numbers["two"];
BEGIN
{
	exit(0);
}
