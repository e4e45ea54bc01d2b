/* NAME a committed row names the probe that speculated
 * OPTIONS
 */
BEGIN
{
	self->s = speculation();
}
BEGIN
{
	speculate(self->s);
	trace(7);
}
BEGIN
{
	commit(self->s);
}
tick-20ms
{
	exit(0);
}
/* EXPECT
 * CPU     ID                    FUNCTION:NAME
 *   0      1                           :BEGIN         7
 *   0   <*>                       :tick-20ms $
 *
 */
