/* NAME associative arrays may be thread-local
 * OPTIONS -q
 */
BEGIN
{
	self->a["k"] = 7;
	self->a["k"] += 3;
	printf("%d\n", self->a["k"]);
	exit(0);
}
/* EXPECT
 * 10
 *
 */
