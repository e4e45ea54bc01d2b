/* NAME equal linear distributions are sorted by their zeros, also where an open end stands for 0
 * OPTIONS -q -x aggpack -x encoding=ascii
 */
BEGIN
{
	@a[1] = lquantize(0, 1, 9, 1, 5);
	@a[2] = lquantize(0, 1, 9, 1, 3);
	@b[1] = lquantize(0, -9, -1, 1, 5);
	@b[2] = lquantize(0, -9, -1, 1, 3);
	exit(0);
}
/* EXPECT
 *
 *
 *       key     min .----------. max      | count
 *         2     < 1 :X         : >= 9     | 3
 *         1     < 1 :X         : >= 9     | 5
 *
 *       key     min .----------. max      | count
 *         2    < -9 :         X: >= -1    | 3
 *         1    < -9 :         X: >= -1    | 5
 */
