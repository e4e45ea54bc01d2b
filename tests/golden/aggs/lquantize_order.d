/* NAME keys of lquantize() are sorted by their sums, what lies beyond as one past the end
 * RUN $DTRACE -q -s $SCRIPT | grep -v '[|v]' | tr -d '\n '
 */
BEGIN
{
	@a[1] = lquantize(20, 0, 10, 5);
	@a[2] = lquantize(5, 0, 10, 5);
	@a[2] = lquantize(5, 0, 10, 5);
	@b[3] = lquantize(0, 0, 10, 1);
	@b[3] = lquantize(5, 0, 10, 1);
	@b[4] = lquantize(5, 0, 10, 1);
	@c[5] = quantize(1 << 62);
	@c[5] = quantize(1);
	@c[6] = quantize(1 << 62);
	exit(0);
}
/* EXPECT
 * 214365\c
 */
