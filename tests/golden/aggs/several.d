/* NAME aggregations print in the order of their declaration
 * OPTIONS -q
 */
BEGIN
{
	@one["x"] = count();
	@two["y"] = sum(5);
	exit(0);
}
/* EXPECT
 *
 *   x                                                                 1
 *   y                                                                 5
 */
