/* NAME the members of what nobody assigned to are 0
 * OPTIONS -q
 */
struct inner { char name[8]; int list[3]; };
struct b { int pid; short s; struct inner in; string text; };
self struct b foo[int];
struct b all[string];
struct b one;
this struct b local;
int numbers[4];
string text;

BEGIN
/!self->foo[0].pid/
{
	printf("%d %d %d %d\n", self->foo[0].pid, all["x"].s, one.in.list[2], this->local.pid);
	printf("'%s' '%s' %d %d\n", stringof(one.in.name), all["x"].text, numbers[3], text[2]);
	all["x"].s = -3;
	printf("%d %d\n", all["x"].s, all["x"].pid);
	all["x"] = 0;
	printf("%d\n", all["x"].s);
	exit(0);
}
/* EXPECT
 * 0 0 0 0
 * '' '' 0 0
 * -3 0
 * 0
 *
 */
