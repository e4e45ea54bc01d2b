/* NAME a pointer to a string literal stays good after its statement and its clause
 * OPTIONS -q
 */
this char *p;
char *q;
BEGIN
{
	this->p = "first";
	q = "second";
	this->r = "third";
	printf("%s %s %s\n", stringof(this->p), stringof(q), this->r);
}
BEGIN
{
	printf("%s %c\n", stringof(q), q[2]);
	exit(0);
}
/* EXPECT
 * first second third
 * second c
 *
 */
