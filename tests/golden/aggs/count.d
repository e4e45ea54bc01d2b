/* NAME count() counts firings by key
 * OPTIONS -q
 * SKIP does not compile: inlines nest too deeply
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
