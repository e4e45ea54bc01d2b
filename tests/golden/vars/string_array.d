/* NAME thread arrays of strings
 * OPTIONS -q
 */
BEGIN
{
	self->s["a", 1] = "x";
	printf("%s\n", self->s["a", 1]);
	exit(0);
}
/* EXPECT
 * x
 *
 */
