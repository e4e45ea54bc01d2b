/* NAME trace() needs a value, not what xlate gives
 * TAG D_TRACE_DYN
 */
struct out { int a; };
struct in { int b; };
translator struct out < struct in *p > { a = p->b; };
BEGIN
{
	trace(xlate <struct out *> ((struct in *)0));
}
