/* NAME #pragma D option stands outside of clauses
 * TAG D_PRAGMA_SCOPE
 * SKIP the command accepts it
 */
BEGIN
{
#pragma D attributes Stable/Stable/Common x
	exit(0);
}
