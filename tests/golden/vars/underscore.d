/* NAME self and this names may equal keywords of other namespaces
 * OPTIONS -q
 */
BEGIN
{
	self->count = 1;
	this->sum = 2;
	printf("%d %d\n", self->count, this->sum);
	exit(0);
}
/* EXPECT
 * 1 2
 *
 */
