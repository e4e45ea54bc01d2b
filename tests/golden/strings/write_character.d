/* NAME characters of strings in variables can be written
 * OPTIONS -q
 */
struct named {
	int number;
	string name;
};
struct named it;
string never;
self string t;

BEGIN
{
	this->s = "abc";
	this->s[1] = 'x';
	global = "abc";
	global[0]++;
	global[2] += 1;
	*self->t = 'Z';
	self->u = "abc";
	self->u[2] = 0;
	a[1] = "abc";
	a[1][1] = 'y';
	it.name = "abc";
	it.name[2] = 'd';
	never[0] = 'n';
	printf("%s %s %s %s %s %s %s\n", this->s, global, self->t, self->u, a[1], it.name, never);
	exit(0);
}
/* EXPECT
 * axc bbd Z ab ayc abd n
 *
 */
