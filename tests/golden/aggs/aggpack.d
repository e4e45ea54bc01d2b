/* NAME aggpack draws a line a key; a linear range whole
 * OPTIONS -q -x aggpack -x encoding=ascii
 */
BEGIN
{
	@a[7] = lquantize(2, 0, 3, 1);
	@b["s", (char)1, (short)2, 3ll] = quantize(1);
	@c = quantize(0);
	@c = quantize(1);
	exit(0);
}
/* EXPECT
 *
 *
 *       key     min .-----. max      | count
 *         7     < 0 :   X : >= 3     | 1
 *
 *                                          key  min .---. max  | count
 *                 s   1     2                3    0 : X : 2    | 1
 *
 *   min .---. max  | count
 *     0 :xx : 2    | 2
 */
