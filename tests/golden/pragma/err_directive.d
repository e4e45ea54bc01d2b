/* NAME a D pragma that does not exist is an error
 * TAG D_PRAGMA_INVAL
 */
#pragma D nowhere
BEGIN
{
	exit(0);
}
