/* NAME what was never committed is never printed
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
	exit(0);
}
/* EXPECT
 *
 */
