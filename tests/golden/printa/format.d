/* NAME printa() formats keys and value
 * OPTIONS -q
 */
BEGIN
{
	@["key", 3] = sum(42);
	printa("[%-6s|%3d|%@5d]\n", @);
	exit(0);
}
/* EXPECT
 * [key   |  3|   42]
 *
 */
