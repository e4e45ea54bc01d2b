/* NAME drops of speculations are counted
 * OPTIONS -q -x droptags
 * SKIP does not compile: inlines nest too deeply
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
