/* NAME what a pointer to a translated structure points at is the structure, with all its members
 * OPTIONS -q
 */
struct in { int a; int b; };
struct inner { short half; };
struct out { int sum; string name; struct inner part; };
translator struct inner < struct in *I > { half = I->b; };
translator struct out < struct in *I > {
	sum = I->a + I->b;
	name = I->a == 1 ? "one" : "other";
	part = *xlate <struct inner *> (I);
};
struct in *p;
BEGIN
{
	p = (struct in *)alloca(sizeof (struct in));
	p->a = 1;
	p->b = 41;
	n = 0;
	print(*xlate <struct out *> (p));
	printf("\n%d %d\n", (*xlate <struct out *> (p)).sum, sizeof (*xlate <struct out *> (p)));
	trace(*xlate <struct inner *> (p));
	printf("\n");
	print(*xlate <struct inner *> (n++, p));
	printf("\n%d\n", n);
	copy = *xlate <struct out *> (p);
	printf("%s %d\n", copy.name, copy.part.half);
	exit(0);
}
/* EXPECT
 * struct out {
 *     int sum = 0x2a
 *     string name = [ "one" ]
 *     struct inner part = {
 *         short half = 0x29
 *     }
 * }
 *
 * 42 264
 * 41
 * struct inner {
 *     short half = 0x29
 * }
 *
 * 1
 * one 41
 *
 */
