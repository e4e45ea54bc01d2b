/* NAME what a library depends on exists
 * TAG D_PRAGMA_DEPEND
 */
#pragma D depends_on module nowhere
BEGIN
{
	exit(0);
}
