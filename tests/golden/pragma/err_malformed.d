/* NAME a pragma has all its words
 * TAG D_PRAGMA_MALFORM
 */
#pragma D option
BEGIN
{
	exit(0);
}
