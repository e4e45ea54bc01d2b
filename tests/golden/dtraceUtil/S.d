/* NAME -S prints the program's instructions on stderr
 * OPTIONS -S -q
 * SKIP does not compile: inlines nest too deeply
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
