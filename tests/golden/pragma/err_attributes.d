/* NAME #pragma D attributes takes attributes and a name
 * TAG D_PRAGMA_MALFORM
 * SKIP the command accepts it
 */
#pragma D attributes nowhere
BEGIN
{
	exit(0);
}
