/* NAME a built-in variable is not declared again
 * TAG D_DECL_IDRED
 */
int timestamp;
BEGIN
{
	exit(0);
}
