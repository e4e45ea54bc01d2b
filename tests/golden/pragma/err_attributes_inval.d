/* NAME attributes have three parts that exist
 * TAG D_PRAGMA_INVAL
 */
inline int x = 1;
#pragma D attributes Big/Red/Car x
BEGIN
{
	exit(0);
}
