/* NAME without a format every value has a column
 * OPTIONS -q
 */
BEGIN
{
	@n["a"] = sum(1);
	@t["a"] = sum(20);
	printa(@n, @t);
	exit(0);
}
/* EXPECT
 *
 *   a                                                                 1               20
 *
 */
