/* NAME amin refuses what is less stable
 * TAG D_ATTR_MIN
 * OPTIONS -x amin=Stable/Stable/Common
 */
BEGIN
{
	trace((int)curthread);
}
