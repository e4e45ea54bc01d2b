/* NAME attributes of nothing that follows are unused
 * TAG D_PRAGMA_UNUSED
 * SKIP the command says D_PRAGMA_SCOPE instead
 */
BEGIN
{
#pragma D attributes Stable/Stable/Common x
	exit(0);
}
