/* NAME -O perfetto of a program that records nothing ends before it traces, and says what to record
 * OPTIONS -O perfetto
 * EXIT 1
 */
BEGIN
{
	self->x = 1;
}
/* EXPECT
 */
/* STDERR
 * ringside: the program has nothing to draw; a picture needs what its clauses record, or aggregations
 */
