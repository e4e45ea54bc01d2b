/* NAME what was never committed is never printed
 * OPTIONS -q
 * SKIP does not compile: inlines nest too deeply
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
