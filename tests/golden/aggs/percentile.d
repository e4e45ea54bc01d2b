/* NAME percentile() prints between which values of a distribution each percentile lies
 * OPTIONS -q
 */
BEGIN
{
	for (this->i = 1; this->i <= 100; this->i++) {
		@ = quantize(this->i);
	}
	percentile(@, 1, 50, 99, 99.9, 100);
	exit(0);
}
/* EXPECT
 *
 *               p1 = 1
 *              p50 = 32 .. 63
 *              p99 = 64 .. 127
 *            p99.9 = 64 .. 127
 *             p100 = 64 .. 127
 *
 */
