/* NAME drops of speculations are counted
 * OPTIONS -q -x droptags
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
 * [DTRACEDROP_SPECUNAVAIL]
 */
