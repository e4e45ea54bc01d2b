/* NAME what the body assigns first is the type that a predicate sees
 * OPTIONS -q
 */
struct pair {
	int a;
	int b;
};

BEGIN
/self->p == NULL || self->p->b == 5/
{
	this->size = sizeof(struct pair);
	self->p = (struct pair *)alloca(this->size);
	printf("a pointer\n");
}

BEGIN
/c <= 0 && sizeof(c) == 1/
{
	c = (char)200;
	c = 5;
	printf("a char: %d\n", c);
}

BEGIN
/n++ == 0 && (m = 4) > 3/
{
	printf("its own: %d %d\n", n, m);
	exit(0);
}
/* EXPECT
 * a pointer
 * a char: 5
 * its own: 1 4
 *
 */
