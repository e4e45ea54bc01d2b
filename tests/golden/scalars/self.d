/* NAME thread variables keep their value in the thread
 * OPTIONS -q
 */
BEGIN
{
	self->x = 42;
}
BEGIN
{
	printf("%d\n", self->x);
	self->x = 0;
}
BEGIN
{
	printf("%d\n", self->x);
	exit(0);
}
/* EXPECT
 * 42
 * 0
 *
 */
