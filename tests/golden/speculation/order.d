/* NAME committed data stands where the commit was
 * OPTIONS -q -x nspec=2
 */
BEGIN
{
	self->a = speculation();
	self->b = speculation();
}
BEGIN
{
	speculate(self->a);
	printf("a\n");
}
BEGIN
{
	speculate(self->b);
	printf("b\n");
}
BEGIN
{
	commit(self->b);
}
BEGIN
{
	commit(self->a);
}
tick-50ms
{
	exit(0);
}
/* EXPECT
 * b
 * a
 *
 */
