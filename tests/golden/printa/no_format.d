/* NAME printa() without a format prints as the end of tracing does
 * OPTIONS -q
 */
BEGIN
{
	@a["key"] = sum(42);
	printa(@a);
	exit(0);
}
/* EXPECT
 *
 *   key                                                              42
 *
 */
