/* NAME nor can a binding
 * TAG D_PRAGMA_SCOPE
 */
#pragma D binding "1.0" printf
BEGIN
{
	exit(0);
}
