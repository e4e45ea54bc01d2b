/* NAME aggsortkey sorts by key
 * OPTIONS -q -x aggsortkey
 */
BEGIN
{
	@["b"] = sum(1);
	@["a"] = sum(2);
	@["c"] = sum(0);
	exit(0);
}
/* EXPECT
 *
 *   a                                                                 2
 *   b                                                                 1
 *   c                                                                 0
 */
