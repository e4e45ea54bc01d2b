/* NAME exit() in a tick
 * EXIT 9
 * OPTIONS -q
 */
tick-5ms
{
	exit(9);
}
/* EXPECT
 *
 */
