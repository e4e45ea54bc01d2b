/* NAME normalization holds at the end, too
 * OPTIONS -q
 */
BEGIN
{
	@["a"] = sum(100);
	normalize(@, 10);
	exit(0);
}
/* EXPECT
 *
 *   a                                                                10
 */
