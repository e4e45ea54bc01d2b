/* NAME what xlate gives is no operand
 * TAG D_OP_DYN
 */
struct out { int a; };
struct in { int b; };
translator struct out < struct in *p > { a = p->b; };
BEGIN
{
	x = xlate <struct out *> ((struct in *)0);
}
