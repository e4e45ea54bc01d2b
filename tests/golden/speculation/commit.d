/* NAME what was speculated is printed once it is committed
 * OPTIONS -q
 */
BEGIN
{
	self->s = speculation();
}
BEGIN
{
	speculate(self->s);
	printf("speculated %d\n", self->s);
}
BEGIN
{
	commit(self->s);
	self->s = 0;
}
tick-50ms
{
	exit(0);
}
/* EXPECT
 * speculated 1
 *
 */
