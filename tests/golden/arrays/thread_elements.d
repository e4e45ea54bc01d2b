/* NAME elements of a thread-local array may be assigned one by one
 * OPTIONS -q
 */
self int a[5];
this short b[3];
BEGIN
{
	self->a[2] = 1;
	self->a[4]--;
	self->a[2] += 10;
	this->b[1] = 6;
	printf("%d %d %d\n", self->a[0], self->a[2], self->a[4]);
	printf("%d %d\n", this->b[0], this->b[1]);
	this->p = &self->a[3];
	*this->p = 12;
}
BEGIN
{
	printf("%d %d\n", self->a[2], self->a[3]);
	exit(0);
}
/* EXPECT
 * 0 11 -1
 * 0 6
 * 11 12
 *
 */
