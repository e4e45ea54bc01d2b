/* NAME -S prints the program's instructions on stderr
 * OPTIONS -S -q
 */
BEGIN
{
	x = 1 + timestamp;
	exit(0);
}
/* EXPECT
 *
 */
/* STDERR
 * ret
 */
