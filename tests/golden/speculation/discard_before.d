/* NAME discard() of one speculation may stand before speculate() of another
 * OPTIONS -q -x nspec=2
 */
BEGIN
{
	self->first = speculation();
	self->second = speculation();
}
BEGIN
{
	discard(self->first);
	speculate(self->second);
	printf("second\n");
}
BEGIN
{
	commit(self->second);
}
BEGIN
{
	exit(0);
}
/* EXPECT
 * second
 *
 */
