/* NAME every assignment operator works on every scope
 * OPTIONS -q
 */
BEGIN
{
	x = 7;
	x += 3;
	x <<= 2;
	self->y = x;
	self->y %= 7;
	this->z = self->y;
	this->z ^= 15;
	this->z |= 16;
	printf("%d %d %d\n", x, self->y, this->z);
	exit(0);
}
/* EXPECT
 * 40 5 26
 *
 */
