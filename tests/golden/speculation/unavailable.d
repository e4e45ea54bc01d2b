/* NAME a speculation that could not be had is reported
 * OPTIONS -q
 */
BEGIN
{
	a = speculation();
	b = speculation();
	exit(0);
}
/* EXPECT
 *
 */
/* STDERR
 * 1 failed speculation (no speculative buffer available)
 */
