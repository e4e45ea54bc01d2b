/* NAME a variable is not declared anew with another type
 * TAG D_DECL_IDRED
 */
self int x;
self char x;
BEGIN
{
	exit(0);
}
