/* NAME #pragma D attributes takes attributes and a name
 * TAG D_PRAGMA_MALFORM
 */
#pragma D attributes nowhere
BEGIN
{
	exit(0);
}
