/* NAME count() counts firings by key
 * OPTIONS -q
 */
BEGIN
{
	@["a"] = count();
	@["b"] = count();
	@["a"] = count();
	exit(0);
}
/* EXPECT
 *
 *   b                                                                 1
 *   a                                                                 2
 */
