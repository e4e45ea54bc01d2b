/* NAME percentile() says where there are no values, and prints nothing of an empty aggregation
 * OPTIONS -q
 */
BEGIN
{
	@a["k"] = quantize(1);
	@b["k"] = quantize(1);
	clear(@a);
	trunc(@b);
	percentile(@a, 50);
	percentile(@b, 50);
	exit(0);
}
/* EXPECT
 *
 *   k
 *              p50 = no values
 *
 *
 */
