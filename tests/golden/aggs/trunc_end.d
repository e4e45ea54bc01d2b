/* NAME what was truncated is not printed at the end
 * OPTIONS -q
 */
BEGIN
{
	@["a"] = sum(1);
	@["b"] = sum(2);
	trunc(@, 1);
	exit(0);
}
/* EXPECT
 *
 *   b                                                                 2
 */
