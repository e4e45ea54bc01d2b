/* NAME percentile() knows buckets below zero, and values that an increment took away
 * OPTIONS -q
 */
BEGIN
{
	@ = quantize(-5);
	@ = quantize(-1);
	@ = quantize(0);
	@ = quantize(7, -3);
	percentile(@, 10, 50, 90);
	exit(0);
}
/* EXPECT
 *
 *              p10 = -7 .. -4
 *              p50 = -1
 *              p90 = 0
 *
 */
