/* NAME a function has no size
 * TAG D_SIZEOF_TYPE
 */
typedef int call_t(int);
BEGIN
{
	trace(sizeof (call_t));
}
