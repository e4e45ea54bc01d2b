/* NAME x, self->x and this->x are three variables
 * OPTIONS -q
 */
BEGIN
{
	x = 1;
	self->x = 2;
	this->x = 3;
	printf("%d %d %d\n", x, self->x, this->x);
	exit(0);
}
/* EXPECT
 * 1 2 3
 *
 */
