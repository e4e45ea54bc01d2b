/* NAME percentile() prints the keys in the order of printa(), and the aggregation does not come again at the end
 * OPTIONS -q
 */
BEGIN
{
	@a["many", 2] = lquantize(55, 0, 100, 10, 3);
	@a["many", 2] = lquantize(5, 0, 100, 10, 1);
	@a["few", 1] = lquantize(-1, 0, 100, 10);
	@a["far", 3] = lquantize(1000, 0, 100, 10);
	percentile(@a, 25, 26);
	exit(0);
}
/* EXPECT
 *
 *   few                                                       1
 *              p25 = < 0
 *              p26 = < 0
 *   far                                                       3
 *              p25 = >= 100
 *              p26 = >= 100
 *   many                                                      2
 *              p25 = 0 .. 9
 *              p26 = 50 .. 59
 *
 */
