/* NAME exit() sets the status
 * EXIT 7
 * OPTIONS -q
 */
BEGIN
{
	exit(7);
}
/* EXPECT
 *
 */
