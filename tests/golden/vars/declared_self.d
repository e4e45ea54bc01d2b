/* NAME declared thread and clause variables have their type
 * OPTIONS -q
 */
self char s;
this short t;
BEGIN
{
	self->s = 300;
	this->t = 70000;
	printf("%d %d\n", self->s, this->t);
	exit(0);
}
/* EXPECT
 * 44 4464
 *
 */
