/* NAME exit() sets the status
 * EXIT 7
 * OPTIONS -q
 * SKIP does not compile: inlines nest too deeply
 */
BEGIN
{
	exit(7);
}
/* EXPECT
 *
 */
