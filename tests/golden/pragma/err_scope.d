/* NAME attributes of what the program did not define cannot be set
 * TAG D_PRAGMA_SCOPE
 */
#pragma D attributes Private/Private/Common pid
BEGIN
{
	exit(0);
}
