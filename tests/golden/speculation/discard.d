/* NAME what was speculated is gone once it is discarded
 * OPTIONS -q
 */
BEGIN
{
	self->s = speculation();
}
BEGIN
{
	speculate(self->s);
	printf("speculated\n");
}
BEGIN
{
	discard(self->s);
	printf("discarded\n");
}
tick-50ms
{
	exit(0);
}
/* EXPECT
 * discarded
 *
 */
