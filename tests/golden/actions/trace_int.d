/* NAME trace() of an int is eight columns wide after the probe
 * OPTIONS
 */
BEGIN
{
	trace(17);
	exit(0);
}
/* EXPECT
 * CPU     ID                    FUNCTION:NAME
 *   0      1                           :BEGIN        17
 *
 */
