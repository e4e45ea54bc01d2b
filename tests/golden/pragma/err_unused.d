/* NAME attributes of nothing that follows are unused
 * TAG D_PRAGMA_UNUSED
 */
BEGIN
{
#pragma D attributes Stable/Stable/Common x
	exit(0);
}
