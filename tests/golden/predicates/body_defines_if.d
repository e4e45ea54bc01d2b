/* NAME a predicate may name what an if or a loop of its clause defines
 * OPTIONS -q
 */
BEGIN
/!self->then && !self->trips/
{
	if (pid > 0) {
		self->then = 1;
	}
	for (this->i = 0; this->i < 3; this->i++) {
		self->trips++;
	}
	printf("%d %d\n", self->then, self->trips);
	exit(0);
}
/* EXPECT
 * 1 3
 *
 */
