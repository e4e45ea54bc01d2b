/* NAME members of a union are reached through pointers
 * OPTIONS -q
 */
union u {
	int i;
	char c[8];
	struct { short low, high; } parts;
};
union u x;

BEGIN
{
	this->p = (union u *)alloca(sizeof(union u));
	this->p->i = 258;
	printf("%d %d\n", this->p->c[0], this->p->c[1]);
	exit(0);
}
/* EXPECT
 * 2 1
 *
 */
