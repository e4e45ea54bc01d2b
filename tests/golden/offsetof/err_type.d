/* NAME offsetof needs a struct or union
 * TAG D_OFFSETOF_TYPE
 */
BEGIN
{
	trace(offsetof(int, a));
}
