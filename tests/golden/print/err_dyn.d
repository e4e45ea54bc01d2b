/* NAME print() needs a value, not what xlate gives
 * TAG D_PRINT_DYN
 */
struct out { int a; };
struct in { int b; };
translator struct out < struct in *p > { a = p->b; };
BEGIN
{
	print(xlate <struct out *> ((struct in *)0));
}
