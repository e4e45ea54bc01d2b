/* NAME percentile() of llquantize() has the bounds of its linear steps
 * OPTIONS -q
 */
BEGIN
{
	@ = llquantize(123, 10, 1, 3, 20);
	percentile(@, 50);
	exit(0);
}
/* EXPECT
 *
 *              p50 = 100 .. 149
 *
 */
