/* NAME attributes are checked while they are read
 * TAG D_PRAGMA_INVAL
 */
#pragma D attributes Big/Red/Car x
BEGIN
{
	= 1;
}
