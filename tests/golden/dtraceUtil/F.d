/* NAME -F marks other probes with a bar
 * OPTIONS -F
 */
BEGIN
{
	trace(1);
	exit(0);
}
/* EXPECT
 * CPU FUNCTION                                 $
 *   0 | :BEGIN                                          1
 *
 */
