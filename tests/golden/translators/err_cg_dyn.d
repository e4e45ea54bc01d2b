/* NAME what xlate gives has no value of its own
 * TAG D_CG_DYN
 */
struct out { int a; };
struct in { int b; };
translator struct out < struct in *p > { a = p->b; };
BEGIN
{
	xlate <struct out *> ((struct in *)0);
}
