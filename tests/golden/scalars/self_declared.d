/* NAME thread variables may be declared
 * OPTIONS -q
 */
self char n;

BEGIN
{
	self->n = 300;
	printf("%d\n", self->n);
	exit(0);
}
/* EXPECT
 * 44
 *
 */
