/* NAME a clause may depend on a provider
 * TAG D_PRAGMA_DEPEND
 */
BEGIN
{
#pragma D depends_on provider nosuch
	exit(0);
}
