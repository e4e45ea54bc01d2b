/* NAME several clauses may speculate into one buffer
 * OPTIONS -q
 */
BEGIN
{
	self->s = speculation();
}
BEGIN
{
	speculate(self->s);
	printf("one\n");
}
BEGIN
{
	speculate(self->s);
	printf("two\n");
}
BEGIN
{
	commit(self->s);
}
tick-50ms
{
	exit(0);
}
/* EXPECT
 * one
 * two
 *
 */
